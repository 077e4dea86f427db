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
/// Blocks are numbered in the order in which they were taken in.
package struct LaidOutBlocks: BlockSource {
  /// Sections that follow one another, in the archive, in what was taken in, and as blocks.
  private struct Run {
    var ordinals: Range<UInt64>
    /// How many sections were taken in before them.
    let position: Int
    /// The number of the first of them as a block.
    let index: Int

    func follows(_ last: Run) -> Bool {
      last.ordinals.upperBound == ordinals.lowerBound
        && last.position + last.ordinals.count == position
        && last.index + last.ordinals.count == index
    }
  }

  /// The number of a CID is that of the block.
  private var slots: CIDSlots
  /// Where each block begins in the file.
  private var starts = AscendingNumbers()
  private var kinds: [BlockKind] = []
  /// In order of ordinals.
  private var runs: [Run] = []
  /// Their ordinals.
  private var ordinals: [Range<UInt64>] = []
  /// The same without sections that are another time what one before them is, in order of the
  /// numbers here.
  private var firstRuns: [Run] = []
  /// How many bytes the sections up to each have together in the archive, in the order in which
  /// they were taken in.
  private let ends: AscendingNumbers
  private let spool: TemporaryFile
  private let mapped: MappedFile
  /// What was made of bytes that were fetched.
  private var fetched: UInt8 = 0

  /// Lays out all blocks of an archive.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - damaged: the sections that do not hash to their CIDs: they count as not there.
  ///   - isHashing: whether all that is read is hashed.
  ///   - keepsRecords: whether the bytes of every record are wanted.
  ///   - observer: is told how many bytes have been read.
  /// - Throws: ``BackupError`` if there is no room for it. What cannot be read is not in it.
  package init(
    _ reader: ArchiveReader, except damaged: Set<CID> = [], isHashing: Bool = false,
    keepsRecords: Bool = false, observer: Progress.Observer = { _ in }
  ) throws {
    var intake = try BlockIntake(except: damaged, isHashing: isHashing, keepsRecords: keepsRecords)
    try intake.read(reader.ordinals, reader, observer)
    try self.init(intake)
  }

  /// Numbers the blocks that were taken in.
  package init(_ intake: consuming BlockIntake) throws {
    spool = intake.spool
    mapped = try spool.map()
    ends = intake.ends
    slots = CIDSlots(expecting: intake.kinds.count)
    starts.reserveCapacity(intake.kinds.count)
    kinds.reserveCapacity(intake.kinds.count)
    try number(intake)
    runs.sort { $0.ordinals.lowerBound < $1.ordinals.lowerBound }
    ordinals = runs.map(\.ordinals)
  }

  /// How many blocks are looked up at a time.
  private static let batchCount = 512
  /// How many bytes are brought for them: what is kept of most is their CID.
  private static let fetchedLength = batchCount * 128

  private mutating func number(_ intake: borrowing BlockIntake) throws(CARError) {
    let mapped = mapped
    var position = 0
    var place = 0
    try mapped.withBytes { bytes throws(CARError) in
      var cursor = CARCursor(payload: 0..<bytes.count, limits: .mapped)
      var sections: [(start: Int, cid: CID)] = []
      var hashes: [UInt64] = []
      var isAtEnd = false
      while !isAtEnd {
        fetched |= bytes.fetch(cursor.offset..<min(cursor.offset + Self.fetchedLength, bytes.count))
        while sections.count < Self.batchCount {
          guard let (section, cid) = try cursor.next(in: bytes) else {
            isAtEnd = true
            break
          }
          sections.append((section.start, cid))
          hashes.append(slots.hash(of: cid))
        }
        slots.fetch(hashes)
        for (number, section) in sections.enumerated() {
          while position >= intake.runs[place].position + intake.runs[place].count { place += 1 }
          let run = intake.runs[place]
          let ordinal = run.first + UInt64(position - run.position)
          let (index, isNew) = insert(section.cid, hashes[number], at: section.start, bytes)
          let found = Run(ordinals: ordinal..<ordinal + 1, position: position, index: index)
          Self.append(found, to: &runs)
          if isNew {
            starts.append(UInt64(section.start))
            kinds.append(intake.kinds[position])
            Self.append(found, to: &firstRuns)
          }
          position += 1
        }
        sections.removeAll(keepingCapacity: true)
        hashes.removeAll(keepingCapacity: true)
      }
    }
  }

  private mutating func insert(_ cid: CID, _ hash: UInt64, at start: Int, _ bytes: Span<UInt8>) -> (
    index: Int, isNew: Bool
  ) {
    let starts = starts
    let (slot, isNew) = slots.insert(hash, starts.count) {
      CARSection.has(cid, at: Int(starts[$0]), in: bytes)
    } cid: {
      CARSection.cid(at: Int(starts[$0]), in: bytes)
    }
    return (slots.number(slot), isNew)
  }

  private static func append(_ run: Run, to runs: inout [Run]) {
    if let last = runs.last, run.follows(last) {
      runs[runs.count - 1].ordinals = last.ordinals.lowerBound..<run.ordinals.upperBound
    } else {
      runs.append(run)
    }
  }

  // MARK: Blocks

  /// How many blocks there are.
  package var count: Int { kinds.count }

  /// How many bytes are kept of them.
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

  /// How many bytes the body of a block has in the archive.
  package func bodyLength(_ number: Int) -> UInt64 {
    let run = firstRun(number)
    let position = run.position + (number - run.index)
    let length = ends[position] - (position > 0 ? ends[position - 1] : 0)
    let kept = mapped.withBytes { CARSection.body(at: Int(starts[number]), in: $0) }
    guard kept.isEmpty else { return UInt64(kept.count) }
    // In front of it stands its length, which takes as many bytes as it takes, and the CID, which
    // alone was kept.
    var prefix: UInt64 = 1
    while prefix < length, Varint.length(of: length - prefix) != prefix { prefix += 1 }
    let section = UInt64(kept.upperBound - Int(starts[number]))
    return length - min(length, prefix + section - UInt64(Varint.length(of: section - 1)))
  }

  /// The number that a block has in the archive.
  package func ordinal(_ number: Int) -> UInt64 {
    let run = firstRun(number)
    return run.ordinals.lowerBound + UInt64(number - run.index)
  }

  /// The last run that begins at a block or before it.
  private func firstRun(_ number: Int) -> Run {
    firstRuns[firstRuns.partitioningIndex { $0.index > number } - 1]
  }

  /// Lets go of the pages in which the blocks are found.
  package func releasePages() { mapped.releasePages() }

  // MARK: Sections

  /// The blocks that lie in these sections of the archive.
  package func blocks(in sections: [Range<UInt64>]) -> BlockSet {
    var set = BlockSet(count: count)
    forEachRun(of: sections) { run, shared in
      let index = run.index + Int(shared.lowerBound - run.ordinals.lowerBound)
      set.insert(index..<index + shared.count)
    }
    return set
  }

  /// Visits sections of the archive in their order, each with the number of its block.
  package func forEach(
    in sections: [Range<UInt64>], _ body: (_ ordinal: UInt64, _ number: Int) throws -> Void
  ) rethrows {
    try forEachRun(of: sections) { run, shared in
      for ordinal in shared {
        try body(ordinal, run.index + Int(ordinal - run.ordinals.lowerBound))
      }
    }
  }

  /// Hands out sections of the archive as they stand in a CAR, if all of them were kept.
  package func copy(_ sections: Range<UInt64>, to sink: (Span<UInt8>) throws -> Void) throws {
    try mapped.withBytes { bytes in
      try forEach(in: [sections]) { _, number in
        let start = Int(starts[number])
        try sink(bytes.extracting(start..<CARSection.read(at: start, in: bytes).section.end))
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

  /// How many of these sections of the archive are here, and how many bytes they have together.
  private func amount(of sections: [Range<UInt64>]) -> (count: UInt64, byteCount: UInt64) {
    var (count, byteCount): (UInt64, UInt64) = (0, 0)
    forEachRun(of: sections) { run, shared in
      let position = run.position + Int(shared.lowerBound - run.ordinals.lowerBound)
      let before = position > 0 ? ends[position - 1] : 0
      count += UInt64(shared.count)
      byteCount = byteCount.addingSaturated(ends[position + shared.count - 1] - before)
    }
    return (count, byteCount)
  }

  /// Makes sure that these sections of the archive are as many and as long as a manifest says.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)``.
  package func checkAmount(
    of sections: [Range<UInt64>], count: UInt64, byteCount: UInt64, headerLength: Int
  ) throws(BackupError) {
    let amount = amount(of: sections)
    guard amount.count == count,
      amount.byteCount.addingSaturated(UInt64(headerLength)) == byteCount
    else { throw .carNotExact("its sections are not those in the manifest") }
  }

  /// Visits the parts of sections that are here, each with the run that it is a part of.
  private func forEachRun(
    of sections: [Range<UInt64>], _ body: (Run, _ shared: Range<UInt64>) throws -> Void
  ) rethrows {
    for section in sections {
      try ordinals.divide(section) { part, index in
        if let index { try body(runs[index], part) }
      }
    }
  }
}
