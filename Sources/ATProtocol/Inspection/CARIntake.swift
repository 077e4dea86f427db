internal import IPLD

/// Reads all blocks of a CAR, on several cores: compares each with its CID, looks at what it is,
/// and enters it in a table.
///
/// ```
/// read ─► round of batches ─► examined, on any core ─► entered, in order
/// ```
///
/// Three rounds are on their way at a time: while one is examined, the one before it is entered,
/// and the next is read. So what is in memory does not grow with the CAR, but for the table.
struct CARIntake {
  /// What is found out, with each block that is not in the table yet.
  private(set) var inspection: RepositoryInspection
  /// The blocks.
  private(set) var blocks = BlockTable()

  private var cursor: CARCursor
  private let workers: Int
  private let isVerifying: Bool
  private var spare: [BatchBox] = []
  private var enteredBatchCount = 0

  /// How many batches make a round.
  private static let batchesInRound = 16
  /// A CAR that is shorter is read before another thread has begun.
  private static let minimumLengthForThreads = 1 << 20
  /// How many blocks the table of blocks has room for from the start, at most.
  private static let maximumExpected = 1 << 22

  /// The mark of a block that needs no second look, if it is a record:
  /// ``RecordScanner/isPlain(_:)``.
  static let plain: UInt8 = 1

  /// Reads the beginning of a CAR.
  ///
  /// - Parameters:
  ///   - bytes: the whole file, of version 1 or 2.
  ///   - isVerifying: false leaves out hashing the blocks.
  ///   - workers: on how many cores.
  /// - Throws: `CARError` when the bytes do not begin as a CAR.
  init(_ bytes: Span<UInt8>, isVerifying: Bool, workers: Int) throws(CARError) {
    let payload = try CARVersion2.payload(of: bytes)
    let header = try CARHeader(
      bytes.extracting(0..<payload.upperBound), at: payload.lowerBound)
    var inspection = RepositoryInspection()
    inspection.carVersion = payload == 0..<bytes.count ? 1 : 2
    inspection.payload = payload
    inspection.header = header
    self.inspection = inspection
    cursor = CARCursor(header: header, payload: payload)
    self.workers = payload.count < Self.minimumLengthForThreads ? 1 : workers
    self.isVerifying = isVerifying
  }

  /// Reads all blocks, up to the first that cannot be read.
  ///
  /// - Parameters:
  ///   - bytes: the whole file.
  ///   - progress: is told now and then how many bytes of it have been read.
  mutating func readAll(_ bytes: Span<UInt8>, progress: (Int) -> Void) {
    var next = readRound(bytes)
    var examined: [BatchBox] = []
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

  private mutating func readRound(_ bytes: Span<UInt8>) -> [BatchBox] {
    var round: [BatchBox] = []
    while inspection.carError == nil, round.count < Self.batchesInRound {
      let box = spare.popLast() ?? BatchBox()
      do throws(CARError) {
        try box.batch.fill(from: &cursor, bytes)
      } catch {
        inspection.carError = error
      }
      if box.batch.cids.isEmpty { break }
      round.append(box)
    }
    return round
  }

  private mutating func enter(_ round: [BatchBox], _ bytes: Span<UInt8>) {
    for box in round {
      enter(box.batch, bytes)
      box.batch.removeAll()
      spare.append(box)
    }
  }

  private mutating func enter(_ batch: Batch, _ bytes: Span<UInt8>) {
    if inspection.sectionCount == 0 {
      inspection.rootIsFirstBlock = batch.cids.first == inspection.header.roots.first
    }
    inspection.sectionCount += batch.cids.count
    var unverifiableCount = 0
    blocks.insert(batch.sections, batch.cids, in: bytes) { index in
      if batch.verdicts[index] == .cannotVerify { unverifiableCount += 1 }
      return batch.isPlain[index] ? Self.plain : 0
    }
    inspection.unverifiableBlockCount += unverifiableCount
    var dagCBORCount = 0
    for index in batch.cids.indices {
      let cid = batch.cids[index]
      // A block that comes again may be another than the first time, whatever its CID says.
      if batch.verdicts[index] == .mismatch { inspection.mismatchedBlocks.append(cid) }
      if cid.codec == .dagCBOR {
        dagCBORCount += 1
      } else {
        inspection.codecCounts[cid.codec, default: 0] += 1
      }
    }
    if dagCBORCount > 0 { inspection.codecCounts[.dagCBOR, default: 0] += dagCBORCount }
    makeRoom(batch, bytes)
  }

  /// The beginning tells how many blocks there may be; to make room later takes longer.
  private mutating func makeRoom(_ batch: Batch, _ bytes: Span<UInt8>) {
    enteredBatchCount += 1
    guard enteredBatchCount <= 16, enteredBatchCount.nonzeroBitCount == 1,
      let last = batch.sections.last
    else { return }
    let payload = inspection.payload
    let share = Double(payload.count) / Double(last.end - payload.lowerBound)
    blocks.reserve(
      Int(min(Double(blocks.count) * share * 1.15, Double(Self.maximumExpected))), in: bytes)
  }
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

/// A batch with one owner at a time: it is filled, one worker examines it, then it is entered in
/// the table.
private final class BatchBox: @unchecked Sendable {
  var batch = Batch()
}
