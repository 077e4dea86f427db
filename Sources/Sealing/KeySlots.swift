// Two frames of 8,192 bytes at the beginning of the file, of the kind 1:
//
// offset  size  field
//     28     4  u32: the version of the format of sealed archives, 1
//     32     8  u64: counts how often the frames were written
//     40     4  u32: how many entries there are
//     44     …  the entries: a u32 length, and an age file
//      …     …  zeros
//   8184     8  XXH64
//
// The plaintext of the first entry, sealed to the archive's identity: a line for each of the
// others, in their order, that says to whom it is sealed. That of each other entry: the archive's
// identity, as an identity file of age.

package import Age
internal import Archive
internal import IPLD

/// The identity of a sealed archive, sealed to each of those who may open it (FORMAT 9.2).
///
/// 1. Both frames say the same, or one of them is damaged, or a write of them was interrupted: then
///    the one that was written later counts.
/// 2. Each entry is an age file with one recipient: removing one leaves the others unchanged.
/// 3. At most one is sealed to a passphrase, so that opening costs one scrypt.
struct KeySlots {
  /// How many bytes each frame has, and both.
  static let slotLength = 8192
  static let length = 2 * slotLength
  /// Where in a frame it says how often they were written.
  static let sequenceOffset = 32
  private static let version: UInt32 = 1
  private static let entriesOffset = SealedFrame.headerLength + 16

  /// How often they were written.
  private(set) var sequence: UInt64
  /// Age files: that of the list, and those of the recipients.
  private(set) var entries: [[UInt8]]
  /// Whether both frames hold and say the same.
  private(set) var areBothWhole: Bool
  /// Which of the frames these are: the other is written first.
  private var number = 0

  /// The entries of the recipients, without that of the list.
  var recipientEntries: ArraySlice<[UInt8]> { entries.dropFirst() }

  // MARK: Reading

  /// Reads them.
  ///
  /// - Throws: ``SealedError`` if neither can be read.
  init(_ file: MappedFile) throws {
    var slots: [(number: Int, sequence: UInt64, entries: [[UInt8]])] = []
    var failure = SealedError.noKeySlot
    try file.withBytes(reading: [0..<min(file.count, Self.length)]) { (bytes) throws in
      for number in 0..<2 {
        do {
          let (sequence, entries) = try Self.slot(number, in: bytes)
          slots.append((number, sequence, entries))
        } catch let error as SealedError {
          // A malformed one says more than a damaged one.
          if failure == .noKeySlot { failure = error }
        }
      }
    }
    guard let best = slots.max(by: { $0.sequence < $1.sequence }) else { throw failure }
    (number, sequence, entries) = best
    areBothWhole =
      slots.count == 2 && slots[0].sequence == slots[1].sequence
      && slots[0].entries == slots[1].entries
  }

  private static func slot(_ number: Int, in file: Span<UInt8>) throws
    -> (sequence: UInt64, entries: [[UInt8]])
  {
    guard let frame = SealedFrame(file, at: number * slotLength), frame.kind == .keySlot,
      frame.range.count == slotLength, frame.holds(in: file)
    else { throw SealedError.noKeySlot }
    let slot = file.extracting(frame.range)
    guard slot.u32(28) == version else {
      throw SealedError.malformedSlot("its version is \(slot.u32(28)), but only 1 is supported")
    }
    var entries: [[UInt8]] = []
    var (place, end) = (entriesOffset, slotLength - SealedFrame.checksumLength)
    let count = slot.u32(40)
    while entries.count < count {
      guard place <= end - 4, slot.u32(place) > 0, slot.u32(place) <= end - place - 4 else {
        throw SealedError.malformedSlot("an entry does not fit into it")
      }
      let length = Int(slot.u32(place))
      entries.append(slot.extracting(place + 4..<place + 4 + length).array(0..<length))
      place += 4 + length
    }
    while end > place, slot[end - 1] == 0 { end -= 1 }
    guard end == place, count > 1 else {
      throw SealedError.malformedSlot("it does not have the number of entries that it says")
    }
    // Each change counts on.
    guard slot.u64(sequenceOffset) < .max else {
      throw SealedError.malformedSlot("its sequence number is the highest possible")
    }
    return (slot.u64(sequenceOffset), entries)
  }

  // MARK: Writing

  /// Slots of a new archive.
  ///
  /// - Throws: ``SealedError``; `AgeError` if the system lacks what age needs.
  init(_ identity: AgeIdentity, for recipients: [SealedRecipient]) throws {
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

  /// One of the two frames, as it is stored.
  private var stored: [UInt8] {
    let content = entries.reduce(into: [UInt8]()) { bytes, entry in
      bytes.append(littleEndian: UInt32(entry.count))
      bytes += entry
    }
    let head = UInt64(Self.version) | (sequence & 0xffff_ffff) << 32
    let rest = sequence >> 32 | UInt64(entries.count) << 32
    let room = Self.slotLength - SealedFrame.checksumLength - Self.entriesOffset
    return SealedFrame.bytes(.keySlot, number: head, plainOffset: rest, reserving: room) { bytes in
      bytes += content
      bytes.append(contentsOf: repeatElement(0, count: room - content.count))
    }
  }

  /// Writes both frames, one after the other, so that one of them is whole at every moment: first
  /// the one that may be damaged.
  ///
  /// - Throws: what the storage throws.
  mutating func write(to file: any ArchiveStorage) throws {
    let bytes = stored
    // In a file that is empty, the second one comes after the first.
    let isNew = try file.size < UInt64(Self.slotLength)
    for number in isNew ? [0, 1] : [1 - number, number] {
      try file.write(bytes.span, at: UInt64(number * Self.slotLength))
      try file.synchronize()
    }
    areBothWhole = true
  }
}

/// A recipient of a sealed archive.
package enum SealedRecipient: Sendable {
  /// The owner of this recipient's identity.
  case key(AgeRecipient)
  /// Everyone who knows this passphrase.
  case passphrase(AgePassphrase)

  /// The entry for the passphrase in a list.
  package static let passphraseName = "passphrase"

  /// Its name in a list.
  package var name: String {
    switch self {
    case .key(let recipient): recipient.text
    case .passphrase: Self.passphraseName
    }
  }

  var isPassphrase: Bool { if case .passphrase = self { true } else { false } }

  /// An identity, as an age file that this recipient can open.
  fileprivate func seal(_ identity: AgeIdentity) throws -> [UInt8] {
    try identity.text.withBytes { text in
      switch self {
      case .key(let recipient): try AgeFile.seal(text, for: [recipient])
      case .passphrase(let passphrase): try AgeFile.seal(text, with: passphrase)
      }
    }
  }
}
