// Frames of 8,192 bytes, of the kind 1, two of them at the beginning of the file:
//
// offset  size  field
//     28     4  u32: the version of the format of sealed archives, 1 or 2
//     32     8  u64: counts how often the frames were written
//     40     4  u32: how many entries there are
//     44     …  the entries: a u32 length, and an age file
//      …     …  zeros
//   8184     8  XXH64
//
// The plaintext of the first entry, sealed to the archive's identity: a line for each of the
// others, in their order, that says to whom it is sealed. That of each other entry: the archive's
// identity, as an identity file of age.

internal import Age
internal import Archive
internal import IPLD

/// The identity of a sealed archive, sealed to each of those who may open it (FORMAT 9.2).
///
/// 1. All key frames of a file say the same, or some are damaged, or a write of them was
///    interrupted: then those count that were written more often.
/// 2. Each entry is an age file with one recipient: removing one leaves the others unchanged.
/// 3. At most one is sealed to a passphrase, so that opening costs one scrypt.
/// 4. Since version 2 there are up to two more key frames among the pieces, and each table says
///    that what it describes is on the medium.
struct KeySlots {
  /// How many bytes each frame has, and how many the two at the beginning.
  static let slotLength = 8192
  static let length = 2 * slotLength
  private static let entriesOffset = SealedFrame.headerLength + 16
  /// The first version, and that of archives which are made now.
  private static let versions: ClosedRange<UInt32> = 1...2

  private(set) var version: UInt32
  /// How often they were written.
  private(set) var sequence: UInt64
  /// Age files: that of the list, and those of the recipients.
  private(set) var entries: [[UInt8]]
  /// Whether both frames at the beginning hold and say the same.
  var areBothWhole: Bool
  /// Which of the two these are; nil if neither.
  var number: Int?

  /// The entries of the recipients, without that of the list.
  var recipientEntries: ArraySlice<[UInt8]> { entries.dropFirst() }

  /// Whether copies lie among the pieces.
  var haveCopies: Bool { version > 1 }

  // MARK: Reading

  /// Reads them: from the beginning, or, where neither holds, from wherever one does.
  ///
  /// - Throws: ``SealedError`` if none can be read.
  init(_ file: MappedFile) throws {
    var slots: [(number: Int, slots: KeySlots)] = []
    var failure = SealedError.noKeySlot
    func read(_ bytes: Span<UInt8>, at place: Int) -> KeySlots? {
      do {
        return try KeySlots(bytes, at: place)
      } catch {
        // A malformed one says more than a damaged one.
        if failure == .noKeySlot { failure = error }
        return nil
      }
    }
    file.withBytes(reading: [0..<min(file.count, Self.length)]) { bytes in
      for number in 0..<2 {
        if let found = read(bytes, at: number * Self.slotLength) { slots.append((number, found)) }
      }
    }
    if let (number, best) = slots.max(by: { $0.slots.sequence < $1.slots.sequence }) {
      self = best
      self.number = number
      areBothWhole = slots.count == 2 && slots.allSatisfy { $0.slots.saysSame(as: best) }
      return
    }
    var best: KeySlots?
    Self.forEach(in: file) { place in
      let found = file.withBytes(reading: [place..<place + Self.slotLength]) {
        read($0, at: place)
      }
      if let found, best.map({ $0.sequence < found.sequence }) ?? true { best = found }
    }
    guard let best else { throw failure }
    self = best
  }

  /// What is left of them in a file; nil if nothing is.
  ///
  /// - Throws: ``SealedError`` if what there is cannot be read, such as those of a later version.
  static func left(in file: MappedFile) throws -> KeySlots? {
    do {
      return try KeySlots(file)
    } catch SealedError.noKeySlot {
      return nil
    }
  }

  /// Whether others have the same content.
  func saysSame(as other: KeySlots) -> Bool {
    version == other.version && sequence == other.sequence && entries == other.entries
  }

  /// Reads one frame.
  init(_ file: Span<UInt8>, at place: Int) throws(SealedError) {
    guard let frame = SealedFrame(file, at: place), frame.isKeySlot, frame.holds(in: file) else {
      throw .noKeySlot
    }
    let slot = file.extracting(frame.range)
    version = slot.u32(28)
    guard Self.versions.contains(version) else {
      throw .malformedSlot(
        "its version is \(version), but only 1 to \(Self.versions.upperBound) are supported")
    }
    var entries: [[UInt8]] = []
    var (place, end) = (Self.entriesOffset, Self.slotLength - SealedFrame.checksumLength)
    let count = slot.u32(40)
    while entries.count < count {
      guard place <= end - 4, slot.u32(place) > 0, slot.u32(place) <= end - place - 4 else {
        throw .malformedSlot("an entry does not fit into it")
      }
      let length = Int(slot.u32(place))
      entries.append(slot.extracting(place + 4..<place + 4 + length).array(0..<length))
      place += 4 + length
    }
    while end > place, slot[end - 1] == 0 { end -= 1 }
    guard end == place, count > 1 else {
      throw .malformedSlot("it does not have the number of entries that it says")
    }
    // Each change counts on.
    sequence = slot.u64(32)
    guard sequence < .max else {
      throw .malformedSlot("its sequence number is the highest possible")
    }
    (self.entries, areBothWhole) = (entries, false)
  }

  // MARK: Writing

  /// Slots of a new archive.
  ///
  /// - Throws: ``SealedError``; `AgeError` if the system lacks what age needs.
  init(_ identity: AgeIdentity, for recipients: [SealedRecipient]) throws {
    version = Self.versions.upperBound
    (sequence, entries, areBothWhole) = (0, [[]], false)
    var names: [String] = []
    for recipient in recipients {
      guard !names.contains(recipient.name) else {
        throw SealedError.knownRecipient(recipient.name)
      }
      entries.append(try recipient.seal(identity))
      names.append(recipient.name)
    }
    guard !names.isEmpty else { throw SealedError.lastRecipient }
    try setList(names, identity)
  }

  /// The names of the recipients, in the order of the entries.
  ///
  /// - Throws: ``SealedError``; `AgeError`.
  func names(_ identity: AgeIdentity) throws -> [String] {
    let list = entries[0]
    let text = try AgeFile.open(list.span, with: [identity])
    let names = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    guard names.count == recipientEntries.count else {
      throw SealedError.malformedSlot("its list has \(names.count) lines")
    }
    return names
  }

  /// Whether they are those of the archive with this identity.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func areOf(_ identity: AgeIdentity) throws -> Bool {
    let list = entries[0]
    do {
      _ = try AgeFile.open(list.span, with: [identity])
      return true
    } catch AgeError.noIdentityMatches {
      return false
    } catch let error where error.faultKind == .damage {
      return false
    }
  }

  /// Lets another recipient open the archive; a passphrase replaces an earlier one.
  ///
  /// - Throws: ``SealedError``; `AgeError`.
  mutating func add(_ recipient: SealedRecipient, _ identity: AgeIdentity) throws {
    var names = try names(identity)
    let entry = try recipient.seal(identity)
    if let place = names.firstIndex(of: recipient.name) {
      guard recipient.isPassphrase else { throw SealedError.knownRecipient(recipient.name) }
      entries[place + 1] = entry
    } else {
      names.append(recipient.name)
      entries.append(entry)
    }
    try setList(names, identity)
  }

  /// Removes a recipient.
  ///
  /// - Throws: ``SealedError``; `AgeError`.
  mutating func remove(_ name: String, _ identity: AgeIdentity) throws {
    var names = try names(identity)
    guard let place = names.firstIndex(of: name) else { throw SealedError.unknownRecipient(name) }
    guard names.count > 1 else { throw SealedError.lastRecipient }
    names.remove(at: place)
    entries.remove(at: place + 1)
    try setList(names, identity)
  }

  private mutating func setList(_ names: [String], _ identity: AgeIdentity) throws {
    let text = names.map { "\($0)\n" }.joined()
    entries[0] = try AgeFile.seal(Array(text.utf8).span, for: [identity.recipient])
    sequence += 1
    let used = entries.reduce(Self.entriesOffset + SealedFrame.checksumLength) { $0 + 4 + $1.count }
    guard used <= Self.slotLength else { throw SealedError.tooManyRecipients }
  }

  /// Lets copies lie among the pieces.
  mutating func upgrade() {
    guard !haveCopies else { return }
    version = Self.versions.upperBound
    sequence += 1
  }

  /// Takes over what others say, which were written more often.
  mutating func take(_ others: KeySlots) {
    version = max(version, others.version)
    (sequence, entries) = (others.sequence, others.entries)
  }

  /// A frame, as it is stored.
  var stored: [UInt8] {
    let content = entries.reduce(into: [UInt8]()) { bytes, entry in
      bytes.append(littleEndian: UInt32(entry.count))
      bytes += entry
    }
    let head = UInt64(version) | (sequence & 0xffff_ffff) << 32
    let rest = sequence >> 32 | UInt64(entries.count) << 32
    let room = Self.slotLength - SealedFrame.checksumLength - Self.entriesOffset
    return SealedFrame.bytes(.keySlot, number: head, plainOffset: rest, reserving: room) { bytes in
      bytes += content
      bytes.append(contentsOf: repeatElement(0, count: room - content.count))
    }
  }
}
