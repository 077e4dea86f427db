internal import ATProtocol
package import Archive
package import IPLD

/// A CAR in a file, read once: where each of its blocks is.
///
/// In memory, a block takes a slot of a `BlockTable`, and a section four bytes.
package final class CARFile: BlockSource {
  /// The file, which has the CAR of version 1 in ``RepositoryInspection/payload``.
  package let file: MappedFile
  /// What was found out about the CAR, and nothing yet about the repository in it.
  package let found: RepositoryInspection
  /// Where each section begins.
  let starts: AscendingNumbers
  let blocks: BlockTable

  /// The mark of a plain record: ``BlockKind/plainRecord``.
  fileprivate static let plain: UInt8 = 1

  /// Reads a CAR on several cores, up to the first section that cannot be read.
  ///
  /// - Parameters:
  ///   - file: the file, of version 1 or 2.
  ///   - verifying: false leaves out hashing the blocks, for bytes that were hashed already.
  ///   - workers: on how many cores; nil for all.
  ///   - progress: called now and then with the number of bytes read.
  /// - Throws: `CARError` when the bytes do not even begin as a CAR.
  package init(
    _ file: MappedFile, verifying: Bool = true, workers: Int? = nil,
    progress: (Int) -> Void = { _ in }
  ) throws(CARError) {
    let intake = try file.withBytes { bytes throws(CARError) in
      var intake = try Intake(
        bytes, isVerifying: verifying, workers: workers ?? Parallel.processorCount)
      intake.readAll(bytes, progress: progress)
      return intake
    }
    var found = intake.found
    found.distinctBlockCount = intake.blocks.count
    (self.file, self.found, starts, blocks) = (file, found, intake.starts, intake.blocks)
  }

  /// The header of the CAR.
  package var header: CARHeader { found.header }

  // MARK: Blocks

  package var byteCount: Int { file.count }

  package var numberLimit: Int { blocks.placeCount }

  package func number(of cid: CID) -> Int? { file.withBytes { blocks.place(of: cid, in: $0) } }

  package func appendNumbers(of cids: [CommonCID], to numbers: inout [Int?]) {
    file.withBytes { blocks.appendPlaces(of: cids, to: &numbers, in: $0) }
  }

  package func kind(_ number: Int) -> BlockKind {
    blocks.marks(number) & Self.plain != 0 ? .plainRecord : .kept
  }

  package func withBody<Value, Failure: Error>(
    _ number: Int, _ use: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try file.withBytes { bytes throws(Failure) in
      try use(bytes.extracting(blocks.body(number, in: bytes)))
    }
  }

  package func bodyLength(_ number: Int) -> UInt64 { withBody(number) { UInt64($0.count) } }

  // MARK: Sections

  /// How many sections there are, repeated blocks counted each time.
  package var sectionCount: Int { starts.count }

  /// Where the section with an index begins.
  package func start(at index: Int) -> Int { Int(starts[index]) }

  /// Where the section of a block begins.
  package func start(of number: Int) -> Int { blocks.start(number) }

  /// Calls `use` with the bytes of the file, and where the section lies that begins at `start`.
  package func withSection<Value, Failure: Error>(
    at start: Int, _ use: (Span<UInt8>, CARSection) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try file.withBytes { bytes throws(Failure) in
      try use(bytes, CARSection.read(at: start, in: bytes).section)
    }
  }

  /// How many bytes all of them have.
  package var sectionByteCount: Int { found.payload.count - header.length }

  /// How many bytes these have.
  package func byteCount(ofSectionsAt starts: [Int]) -> Int {
    starts.reduce(0) { count, start in
      count + withSection(at: start) { $1.end - $1.start }
    }
  }

  /// These blocks in the order in which they are in the file, each once.
  package func inOrder(_ wanted: BlockSet) -> [Int] {
    file.withBytes { bytes in
      starts.compactMap { start in
        let cid = CARSection.cid(at: Int(start), in: bytes)
        guard let number = blocks.place(of: cid, in: bytes), wanted.contains(number),
          blocks.start(number) == start
        else { return nil }
        return number
      }
    }
  }
}

/// Reading all blocks of a CAR: comparing each with its CID, looking at what it is, entering it in
/// a table.
///
/// ```
/// read ─► round of batches ─► examined, on any core ─► entered, in order
/// ```
///
/// Three rounds are on their way at a time: while one is examined, the one before it is entered,
/// and the next is read. So what is in memory does not grow with the CAR, except for the tables.
private struct Intake {
  /// What is found out.
  private(set) var found: RepositoryInspection
  /// The blocks.
  private(set) var blocks = BlockTable()
  /// Where the sections begin.
  private(set) var starts = AscendingNumbers()

  private var cursor: CARCursor
  private let workers: Int
  private let isVerifying: Bool
  private var spare: [Slot] = []
  private var enteredBatchCount = 0

  /// How many batches make a round.
  private static let batchesInRound = 16
  /// A CAR that is shorter is read before another thread has begun.
  private static let minimumLengthForThreads = 1 << 20
  /// How many blocks the table of blocks has room for from the start, at most.
  private static let maximumExpected = 1 << 22

  /// Reads the beginning of a CAR.
  init(_ bytes: Span<UInt8>, isVerifying: Bool, workers: Int) throws(CARError) {
    let payload = try CARVersion2.payload(of: bytes)
    let header = try CARHeader(bytes.extracting(0..<payload.upperBound), at: payload.lowerBound)
    var found = RepositoryInspection()
    found.carVersion = payload == 0..<bytes.count ? 1 : 2
    found.payload = payload
    found.header = header
    self.found = found
    cursor = CARCursor(header: header, payload: payload)
    self.workers = payload.count < Self.minimumLengthForThreads ? 1 : workers
    self.isVerifying = isVerifying
  }

  /// Reads all blocks, up to the first that cannot be read.
  mutating func readAll(_ bytes: Span<UInt8>, progress: (Int) -> Void) {
    var next = readRound(bytes)
    var examined: [Slot] = []
    while !next.isEmpty {
      let (round, isVerifying) = (next, isVerifying)
      Parallel.perform(round.count, workers: workers) {
        enter(examined, bytes)
        next = readRound(bytes)
      } _: { index in
        round[index].batch.examine(bytes, isVerifying: isVerifying)
      }
      examined = round
      progress(cursor.offset)
    }
    enter(examined, bytes)
  }

  private mutating func readRound(_ bytes: Span<UInt8>) -> [Slot] {
    var round: [Slot] = []
    while found.carError == nil, round.count < Self.batchesInRound {
      let slot = spare.popLast() ?? Slot()
      do throws(CARError) {
        try slot.batch.fill(from: &cursor, bytes)
      } catch {
        found.carError = error
      }
      if slot.batch.cids.isEmpty { break }
      round.append(slot)
    }
    return round
  }

  private mutating func enter(_ round: [Slot], _ bytes: Span<UInt8>) {
    for slot in round {
      enter(slot.batch, bytes)
      slot.batch.removeAll()
    }
    spare += round
  }

  private mutating func enter(_ batch: Batch, _ bytes: Span<UInt8>) {
    if found.sectionCount == 0 {
      found.rootIsFirstBlock = batch.cids.first == found.header.roots.first
    }
    found.sectionCount += batch.cids.count
    for section in batch.sections { starts.append(UInt64(section.start)) }
    var unverifiableCount = 0
    blocks.insert(batch.sections, batch.cids, in: bytes) { index in
      if batch.verdicts[index] == .cannotVerify { unverifiableCount += 1 }
      return batch.isPlain[index] ? CARFile.plain : 0
    }
    found.unverifiableBlockCount += unverifiableCount
    var dagCBORCount = 0
    for index in batch.cids.indices {
      let cid = batch.cids[index]
      // A block that comes again may be another than the first time, whatever its CID says.
      if batch.verdicts[index] == .mismatch { found.mismatchedBlocks.append(cid) }
      let length = batch.sections[index].bodyRange.count
      if length > RepositoryLimits.block, isVerifying, cid.codec != .raw,
        batch.verdicts[index] != .mismatch, found.tooLong == nil
      {
        found.tooLong = CARError(
          .blockTooLong(cid, length: length), offset: batch.sections[index].start)
      }
      if cid.codec == .dagCBOR {
        dagCBORCount += 1
      } else {
        found.codecCounts[cid.codec, default: 0] += 1
      }
    }
    if dagCBORCount > 0 { found.codecCounts[.dagCBOR, default: 0] += dagCBORCount }
    makeRoom(batch, bytes)
  }

  /// The beginning tells how many blocks there may be; to make room later takes longer.
  private mutating func makeRoom(_ batch: Batch, _ bytes: Span<UInt8>) {
    enteredBatchCount += 1
    guard enteredBatchCount <= 16, enteredBatchCount.nonzeroBitCount == 1,
      let last = batch.sections.last
    else { return }
    let payload = found.payload
    let share = Double(payload.count) / Double(last.end - payload.lowerBound)
    blocks.reserve(
      Int(min(Double(blocks.count) * share * 1.15, Double(Self.maximumExpected))), in: bytes)
  }
}

/// The place of a batch, which has one owner at a time: it is filled, one worker examines it, then
/// it is entered in the table.
///
/// Whether two touch it at once is asked once for each of these steps, not once for each block.
private final class Slot: @unchecked Sendable {
  var batch = Batch()
}

/// Blocks that are taken together, for what each of them waits for is waited for once.
private struct Batch {
  /// Enough to keep all lanes busy, and few enough for their bytes to be at hand still.
  private static let limit = 128 << 10

  private(set) var sections: [CARSection] = []
  private(set) var cids: [CID] = []
  /// Whether each hashes to its CID; what is not asked for counts as if it did.
  private(set) var verdicts: [Multihash.Verification] = []
  /// Whether each is a record that needs no second look, if it is a record.
  private(set) var isPlain: [Bool] = []
  private var bodies: [Range<Int>] = []
  private var length = 0
  private var scanner = RecordScanner()
  private var fetched: UInt8 = 0

  /// Takes as many sections as belong together, as far as there are any.
  mutating func fill(from cursor: inout CARCursor, _ bytes: Span<UInt8>) throws(CARError) {
    // Each section says where the next begins: to have them all brought at once takes less time
    // than one after the other.
    fetched |= bytes.fetch(cursor.offset..<min(cursor.offset + Self.limit, cursor.end))
    while length < Self.limit, let (section, cid) = try cursor.next(in: bytes) {
      sections.append(section)
      bodies.append(section.bodyRange)
      cids.append(cid)
      // What is kept of a block has a length, too, or there could be millions of empty ones.
      length += section.bodyRange.count + 100
    }
  }

  /// Looks at the blocks, and compares them with their CIDs.
  mutating func examine(_ bytes: Span<UInt8>, isVerifying: Bool) {
    for body in bodies {
      let block = bytes.extracting(body)
      isPlain.append(!MSTNode.isLikely(block) && scanner.isPlain(block))
    }
    guard isVerifying else {
      verdicts = [Multihash.Verification](repeating: .matches, count: cids.count)
      return
    }
    let digests = SHA256.digests(of: bodies, in: bytes)
    for index in digests.indices {
      verdicts.append(cids[index].verify(bytes.extracting(bodies[index]), hashedTo: digests[index]))
    }
  }

  mutating func removeAll() {
    sections.removeAll(keepingCapacity: true)
    cids.removeAll(keepingCapacity: true)
    verdicts.removeAll(keepingCapacity: true)
    isPlain.removeAll(keepingCapacity: true)
    bodies.removeAll(keepingCapacity: true)
    length = 0
  }
}
