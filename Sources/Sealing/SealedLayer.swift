internal import Age
package import Archive
internal import SystemPackage

/// Opens sealed archives wherever an archive is opened.
package final class SealedLayer: StorageLayer {
  private let keys: KeyRing
  private let recipients: [SealedRecipient]
  private let parity: @Sendable () throws -> Int?

  /// A layer.
  ///
  /// - Parameters:
  ///   - keys: The keys that open archives.
  ///   - recipients: The recipients of new archives; none if these are not sealed.
  ///   - parity: How much parity a new archive has, in percent; nil for none. It is called when one
  ///     is begun.
  package init(
    _ keys: KeyRing, recipients: [SealedRecipient] = [],
    parity: @escaping @Sendable () throws -> Int? = { nil }
  ) {
    (self.keys, self.recipients, self.parity) = (keys, recipients, parity)
  }

  package func knows(beginning: Span<UInt8>) -> Bool { SealedFrame.isBeginning(beginning) }

  package func knows(end: Span<UInt8>) -> Bool {
    if SealedFrame.isEnd(end) { return true }
    // One in which a write was interrupted: the last frame ends with it.
    var place = 0
    while let frame = SealedFrame.next(in: end, from: place, before: end.count) {
      if frame.range.upperBound == end.count { return true }
      place = frame.range.lowerBound + 1
    }
    return false
  }

  package func knows(remains file: MappedFile) -> Bool {
    file.withBytes { SealedFrame.beginning(in: $0, among: 0..<file.count) != nil }
  }

  package func furtherArchive(in file: MappedFile) -> Int? { SealedFrame.furtherArchive(in: file) }

  package func beginning(in file: Span<UInt8>, among range: Range<Int>) -> Int? {
    SealedFrame.beginning(in: file, among: range)
  }

  package func map(_ file: MappedFile) throws -> MappedFile {
    let slots = try Self.slots(file)
    let identity = try keys.identity(of: slots)
    let layout = try SealedLayout(file, identity, ignoresTail: file.isBeingWritten)
    return try Self.map(file, layout, identity)
  }

  /// The key frames of a file.
  ///
  /// - Throws: ``SealedError``; ``ArchiveError`` if nothing was written after them and neither is
  ///   whole, so that nothing is lost with the file.
  private static func slots(_ file: MappedFile) throws -> KeySlots {
    do {
      return try KeySlots(file)
    } catch SealedError.noKeySlot where file.count <= KeySlots.length {
      throw ArchiveError(.unbegunSeal)
    }
  }

  static func map(_ file: MappedFile, _ layout: SealedLayout, _ identity: AgeIdentity) throws
    -> MappedFile
  {
    let scratch: MemoryScratch
    do {
      scratch = try MemoryScratch(length: layout.plainCount)
    } catch let error as Errno {
      throw SealedError.noMemory("\(error)")
    }
    return try MappedFile(
      FetchedFile(
        SealedSource(file, layout, identity), count: layout.plainCount, scratch: scratch,
        capacity: openedCapacity),
      isBeingWritten: file.isBeingWritten)
  }

  /// How many decrypted bytes are cached: to decrypt them again takes little time, unlike to fetch
  /// bytes again.
  private static let openedCapacity = 32 << 20

  package func committedLength(of file: MappedFile) -> UInt64? {
    SealedFrame.lastTable(in: file, before: file.count).map { UInt64($0.range.upperBound) }
  }

  package var rewrittenLength: Int { KeySlots.length }

  package func endingLength(of file: MappedFile, at place: Int) -> Int? {
    SealedFrame.lastTable(in: file, before: place).flatMap { table in
      table.range.upperBound == place ? table.range.count : nil
    }
  }

  package func keyOrder(of beginning: [UInt8], to file: MappedFile) throws -> KeyOrder {
    let (own, other) = (
      try KeySlots.left(in: file), try KeySlots.left(in: MappedFile(copying: beginning))
    )
    guard let other else { return own == nil ? .same : .otherIsOlder }
    guard let own else { return .otherIsNewer }
    if other.saysSame(as: own) {
      // A change that was interrupted is finished.
      return !own.areBothWhole ? .otherIsNewer : other.areBothWhole ? .same : .otherIsOlder
    }
    return other.sequence > own.sequence ? .otherIsNewer : .otherIsOlder
  }

  package func settleKeys(_ beginning: [UInt8], in file: any ArchiveStorage) throws {
    let map = try file.map()
    var slots = try KeySlots(map)
    if try keyOrder(of: beginning, to: map) == .otherIsNewer {
      slots.take(try KeySlots(MappedFile(copying: beginning)))
    } else if slots.areBothWhole, slots.areInAllCopies(of: map) {
      return
    }
    try slots.write(to: file)
  }

  package func flaws(of file: MappedFile) throws -> [ArchiveError] { try SealedCheck(file).flaws }

  package func storage(in file: any ArchiveStorage) throws -> any ArchiveStorage {
    let slots = try Self.slots(file.map())
    let identity = try keys.identity(of: slots)
    let storage = try SealedStorage(file, identity, slots)
    // The run that began it has committed nothing.
    if try committedLength(of: file.map()) == nil, let percent = try parity() {
      _ = storage.keepParity(percent: percent)
    }
    guard try storage.isEndDamaged, try heal(file) > 0 else { return storage }
    return try SealedStorage(file, identity, Self.slots(file.map()))
  }

  package func storage(
    beginning file: any ArchiveStorage, of archives: [MappedFile], for others: [String]
  ) throws -> any ArchiveStorage {
    let sealed = archives.lazy.compactMap { $0.source as? SealedSource }.first
    if let sealed {
      // Of copies of one archive, who may open that one whose keys were changed most often.
      let copies = archives.compactMap { $0.source as? SealedSource }
        .filter { $0.identity.recipient == sealed.identity.recipient }
      let slots = try copies.map { try KeySlots($0.file) }.max { $0.sequence < $1.sequence }
      return try SealedStorage(
        creating: file, sealed.identity, slots ?? KeySlots(sealed.file),
        parity: sealed.parityPercent)
    }
    // An append reads what is there, so its program has to be a recipient.
    guard others.isEmpty || !recipients.isEmpty else { throw SealedError.noOwnRecipient }
    guard !recipients.isEmpty else { return file }
    let own = Set(recipients.map(\.name))
    let given = try others.map { SealedRecipient.key(try AgeRecipient(parsing: $0)) }
    return try create(in: file, for: recipients + given.filter { !own.contains($0.name) })
  }

  /// Begins a sealed archive in a storage that is empty.
  ///
  /// - Parameters:
  ///   - file: The storage.
  ///   - recipients: The recipients who may open it.
  /// - Throws: what the storage throws, and what tells the parity of new archives; `AgeError`;
  ///   ``SealedError``.
  package func create(in file: any ArchiveStorage, for recipients: [SealedRecipient]) throws
    -> any ArchiveStorage
  {
    // What cannot be protected is not begun.
    let percent = try parity()
    let storage = try SealedStorage(creating: file, for: recipients, keys)
    if let percent { _ = storage.keepParity(percent: percent) }
    return storage
  }
}

/// The recipients of a sealed archive.
package struct SealedKeys {
  private let file: any ArchiveStorage
  private var slots: KeySlots
  private let identity: AgeIdentity

  /// The recipients of an archive.
  ///
  /// - Throws: ``SealedError``; what the storage throws.
  package init(_ file: any ArchiveStorage, _ keys: KeyRing) throws {
    self.file = file
    let map = try file.map()
    guard map.isKnown(to: SealedLayer(keys)) else {
      try map.refuseFurtherArchives()
      throw SealedError.notSealed
    }
    (slots, identity) = try map.refusingFurtherArchives {
      let slots = try KeySlots(map)
      return (slots, try keys.identity(of: slots))
    }
  }

  /// Their names, in the order in which they were added.
  ///
  /// - Throws: ``SealedError``; `AgeError`.
  package var names: [String] { get throws { try slots.names(identity) } }

  /// Lets another recipient open the archive, too.
  ///
  /// - Throws: ``SealedError``; `AgeError`; what the storage throws: then it is sealed as it was,
  ///   or to the new one, too.
  package mutating func add(_ recipient: SealedRecipient) throws {
    try change { slots, identity in try slots.add(recipient, identity) }
  }

  /// Removes a recipient.
  ///
  /// - Throws: as ``add(_:)`` does.
  package mutating func remove(_ name: String) throws {
    try change { slots, identity in try slots.remove(name, identity) }
  }

  /// Takes over who may open another copy of the archive, if that was changed more often there.
  ///
  /// - Parameter copy: An archive, opened.
  /// - Returns: Whether it was.
  /// - Throws: as ``add(_:)`` does.
  package mutating func take(from copy: MappedFile) throws -> Bool {
    guard let source = copy.source as? SealedSource,
      source.identity.recipient == identity.recipient
    else { return false }
    let others = try KeySlots(source.file)
    guard others.sequence > slots.sequence else { return false }
    try change { slots, _ in slots.take(others) }
    return true
  }

  private mutating func change(_ body: (inout KeySlots, AgeIdentity) throws -> Void) throws {
    let layout = try SealedLayout(file.map(), identity)
    if let place = layout.furtherArchive {
      throw ArchiveError(.furtherArchive, offset: UInt64(place))
    }
    var changed = slots
    changed.upgrade()
    try body(&changed, identity)
    try changed.write(to: file, copiesAt: layout.keyCopies)
    slots = changed
  }
}
