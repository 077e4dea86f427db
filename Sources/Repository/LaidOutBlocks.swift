package import Archive
package import Files
package import IPLD

/// Blocks of an archive, laid out to be asked for in any order: those of one snapshot, or of all.
///
/// Trees ask for their nodes in an order that has nothing to do with that of the file, so
/// everything they may ask for is laid out first: every CID, and the bodies of tree nodes, of
/// commits, and of the few records that have more to say than that they keep the rules. This lies
/// in a file without a name; each block is in it once, however many snapshots share it. In memory
/// are some thirty bytes for each.
///
/// Sections are numbered in the order in which they were taken in; the number of a block is that of
/// its first section.
///
/// It never changes once it is made. A walk copies its source at each step, which is one reference.
package final class LaidOutBlocks: BlockSource {
  /// Sections that follow one another in the archive, and the number of the first of them.
  typealias Run = (ordinals: Range<UInt64>, first: Int)
  private typealias Repeated = (section: Int, block: Int)

  private let slots: CIDSlots
  /// Where each section begins in the file.
  private let starts: AscendingNumbers
  private let kinds: [BlockKind]
  /// How many bytes the sections up to each have together in the archive.
  private let ends: AscendingNumbers
  /// In the order in which they were taken in.
  private let runs: [Run]
  /// In the order of the archive.
  private let runsInArchive: [Run]
  /// Their ordinals.
  private let ordinals: [Range<UInt64>]
  /// The sections that are what one before them is, in their order, and the number of that block.
  private let repeated: [Repeated]
  private let spool: TemporaryFile
  private let mapped: MappedFile
  /// What was made of bytes that were fetched.
  private let fetched: UInt8

  /// Lays out all blocks of an archive.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - damaged: the sections that do not hash to their CIDs: they count as not there.
  ///   - isHashing: whether all that is read is hashed.
  ///   - keepsRecords: whether the bytes of every record are wanted.
  ///   - observer: called with the number of bytes read.
  /// - Throws: ``BackupError`` if there is no room for it. What cannot be read is not in it.
  package convenience init(
    _ reader: ArchiveReader, except damaged: Set<CID> = [], isHashing: Bool = false,
    keepsRecords: Bool = false, observer: Progress.Observer = { _ in }
  ) throws {
    var intake = try BlockIntake(except: damaged, isHashing: isHashing, keepsRecords: keepsRecords)
    try intake.read(reader.ordinals, reader, observer)
    try self.init(intake)
  }

  /// Enters the blocks that were taken in into a table.
  package init(_ intake: BlockIntake) throws {
    spool = intake.spool
    mapped = try spool.map()
    (kinds, ends, runs) = (intake.kinds, intake.ends, intake.runs)
    runsInArchive = runs.sorted { $0.ordinals.lowerBound < $1.ordinals.lowerBound }
    ordinals = runsInArchive.map(\.ordinals)
    (slots, starts, repeated, fetched) = try Self.enter(mapped, count: kinds.count)
  }

  /// How many blocks are looked up at a time.
  private static let batchCount = 512
  /// How many bytes are brought for them: what is kept of most is their CID.
  private static let fetchedLength = batchCount * 128

  private static func enter(_ mapped: MappedFile, count: Int) throws(CARError) -> (
    CIDSlots, AscendingNumbers, [Repeated], fetched: UInt8
  ) {
    var slots = CIDSlots(expecting: count)
    var starts = AscendingNumbers()
    starts.reserveCapacity(count)
    var repeated: [Repeated] = []
    var fetched: UInt8 = 0
    try mapped.withBytes { bytes throws(CARError) in
      var cursor = CARCursor(payload: 0..<bytes.count, limits: .mapped)
      var sections: [(start: Int, cid: CID)] = []
      var hashes: [UInt64] = []
      var isAtEnd = false
      while !isAtEnd {
        fetched |= bytes.fetch(cursor.offset..<min(cursor.offset + fetchedLength, bytes.count))
        while sections.count < batchCount {
          guard let (section, cid) = try cursor.next(in: bytes) else {
            isAtEnd = true
            break
          }
          sections.append((section.start, cid))
          hashes.append(slots.hash(of: cid))
        }
        slots.fetch(hashes)
        for (section, hash) in zip(sections, hashes) {
          let (slot, isNew) = slots.insert(hash, starts.count) {
            CARSection.has(section.cid, at: Int(starts[$0]), in: bytes)
          } cid: {
            CARSection.cid(at: Int(starts[$0]), in: bytes)
          }
          // That block has been before.
          if !isNew { repeated.append((starts.count, slots.number(slot))) }
          starts.append(UInt64(section.start))
        }
        sections.removeAll(keepingCapacity: true)
        hashes.removeAll(keepingCapacity: true)
      }
    }
    return (slots, starts, repeated, fetched)
  }

  // MARK: Blocks

  /// How many different blocks there are.
  package var count: Int { kinds.count - repeated.count }

  /// The numbers of these.
  package var numbers: [Int] { blocks(in: ordinals).map(\.self) }

  package var byteCount: Int { mapped.count }

  package var numberLimit: Int { kinds.count }

  package func number(of cid: CID) -> Int? {
    mapped.withBytes { bytes in
      slots.slot(slots.hash(of: cid)) { CARSection.has(cid, at: Int(starts[$0]), in: bytes) }
        .map(slots.number)
    }
  }

  package func appendNumbers(of cids: [CommonCID], to numbers: inout [Int?]) {
    mapped.withBytes { bytes in
      slots.findAll(cids) {
        CARSection.has($0, at: Int(starts[$1]), in: bytes)
      } each: {
        numbers.append($0.map(slots.number))
      }
    }
  }

  /// The CID of a block.
  package func cid(_ number: Int) -> CID {
    mapped.withBytes { CARSection.cid(at: Int(starts[number]), in: $0) }
  }

  package func kind(_ number: Int) -> BlockKind { kinds[number] }

  package func withBody<Value, Failure: Error>(
    _ number: Int, _ use: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try mapped.withBytes { bytes throws(Failure) in
      try use(bytes.extracting(CARSection.body(at: Int(starts[number]), in: bytes)))
    }
  }

  /// Calls `use` with a block as it stands in a CAR, if all of it was kept.
  package func withSection<Value>(_ number: Int, _ use: (Span<UInt8>) throws -> Value) rethrows
    -> Value
  {
    try mapped.withBytes { bytes in
      let section = CARSection.read(at: Int(starts[number]), in: bytes).section
      return try use(bytes.extracting(section.start..<section.end))
    }
  }

  /// How many bytes the body of a block has in the archive.
  package func bodyLength(_ number: Int) -> UInt64 {
    let kept = mapped.withBytes { CARSection.body(at: Int(starts[number]), in: $0) }
    guard kept.isEmpty else { return UInt64(kept.count) }
    let length = byteCount(number..<number + 1)
    // In front of it stands its length, which takes as many bytes as it takes, and the CID, which
    // alone was kept.
    var prefix: UInt64 = 1
    while prefix < length, Varint.length(of: length - prefix) != prefix { prefix += 1 }
    let section = UInt64(kept.upperBound - Int(starts[number]))
    return length - min(length, prefix + section - UInt64(Varint.length(of: section - 1)))
  }

  /// The number that a block has in the archive.
  package func ordinal(_ number: Int) -> UInt64 {
    let run = runs[runs.partitioningIndex { $0.first > number } - 1]
    return run.ordinals.lowerBound + UInt64(number - run.first)
  }

  /// Releases the pages in which the blocks are found.
  package func releasePages() { mapped.releasePages() }

  // MARK: Sections

  /// How many bytes sections that were taken in one after the other have in the archive.
  private func byteCount(_ numbers: Range<Int>) -> UInt64 {
    ends[numbers.upperBound - 1] - (numbers.lowerBound > 0 ? ends[numbers.lowerBound - 1] : 0)
  }

  /// The blocks that lie in these sections of the archive.
  package func blocks(in sections: [Range<UInt64>]) -> BlockSet {
    var set = BlockSet(count: numberLimit)
    forEachRun(of: sections) { _, numbers in
      set.insert(numbers)
      for (section, block) in repeated[
        (repeated.partitioningIndex { $0.section >= numbers.lowerBound })...]
      {
        guard section < numbers.upperBound else { break }
        set.remove(section)
        set.insert(block)
      }
    }
    return set
  }

  /// Visits sections of the archive in their order, each with the number of its block.
  package func forEach(
    in sections: [Range<UInt64>], _ body: (_ ordinal: UInt64, _ number: Int) throws -> Void
  ) rethrows {
    try forEachRun(of: sections) { ordinals, numbers in
      for (ordinal, number) in zip(ordinals, numbers) {
        let place = repeated.partitioningIndex { $0.section >= number }
        let isRepeated = place < repeated.count && repeated[place].section == number
        try body(ordinal, isRepeated ? repeated[place].block : number)
      }
    }
  }

  /// Hands out sections of the archive as they stand in a CAR, if all of them were kept.
  package func copy(_ sections: Range<UInt64>, to sink: (Span<UInt8>) throws -> Void) rethrows {
    try forEachRun(of: [sections]) { _, numbers in
      try mapped.withBytes { bytes in
        let last = CARSection.read(at: Int(starts[numbers.upperBound - 1]), in: bytes).section
        try sink(bytes.extracting(Int(starts[numbers.lowerBound])..<last.end))
      }
    }
  }

  /// Divides sections of the archive into those that are here and those that are not, in their
  /// order.
  package func forEachPart(
    of sections: Range<UInt64>,
    _ body: (_ part: Range<UInt64>, _ isHere: Bool) throws -> Void
  ) rethrows {
    try ordinals.divide(sections) { part, index in try body(part, index != nil) }
  }

  /// Makes sure that these sections of the archive are here, and as many and as long as a manifest
  /// says.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)``.
  package func checkAmount(
    of sections: [Range<UInt64>], count: UInt64, byteCount: UInt64, headerLength: Int
  ) throws(BackupError) {
    var found = (count: UInt64(0), byteCount: UInt64(headerLength))
    forEachRun(of: sections) { ordinals, numbers in
      found.count += UInt64(ordinals.count)
      found.byteCount = found.byteCount.addingSaturated(self.byteCount(numbers))
    }
    guard found == (count, byteCount) else {
      throw .carNotExact("its sections are not those in the manifest")
    }
  }

  /// Visits the parts of sections of the archive that are here, in their order.
  private func forEachRun(
    of sections: [Range<UInt64>],
    _ body: (_ ordinals: Range<UInt64>, _ numbers: Range<Int>) throws -> Void
  ) rethrows {
    for section in sections {
      try ordinals.divide(section) { part, index in
        guard let index else { return }
        let run = runsInArchive[index]
        let first = run.first + Int(part.lowerBound - run.ordinals.lowerBound)
        try body(part, first..<first + part.count)
      }
    }
  }
}
