public import IPLD

/// Reads a repository CAR from end to end and reports everything that is wrong with it, not only the first thing.
///
/// Every block is hashed, the whole tree is walked and checked, every record is checked and searched for blobs. The CAR
/// lies in memory or, better, in a mapped file; what is allocated is a `BlockTable` and what the report lists.
public struct RepositoryInspector {
  /// A record that the walk came to.
  public struct Record {
    /// Its key in the tree, `collection/rkey`.
    public let key: [UInt8]
    /// Its block.
    public let cid: CID
    /// Where its block lies in the CAR; nil if it is not there.
    public let body: Range<Int>?
  }

  private var inspection = RepositoryInspection()
  private var scanner = RecordScanner()
  private var distinctMissingNodes: Set<CID> = []
  private var distinctMissingRecords: Set<CID> = []
  /// How many bytes of records have been scanned again for another key; never more than the CAR has, or one block with a million
  /// keys would take a million times as long as it should.
  private var rescannedLength = 0
  private var collection: (name: [UInt8], count: Int) = ([], 0)

  /// What a block was reached as, in its marks in the table.
  private enum Role {
    static let commit: UInt8 = 1
    static let node: UInt8 = 2
    static let record: UInt8 = 4
    static let any: UInt8 = 7
    /// A record that needs no second look, if it is one: ``RecordScanner/isPlain(_:)``.
    static let plain: UInt8 = 8
  }

  /// Inspects a CAR.
  ///
  /// - Parameters:
  ///   - bytes: the whole file, of version 1 or 2.
  ///   - verifying: false leaves out hashing the blocks, for bytes that were hashed already.
  ///   - progress: is told now and then how many bytes of the CAR have been read.
  ///   - visit: receives every record in the order of the tree.
  /// - Throws: `CARError` when the bytes do not even begin as a CAR; everything later is part of the report.
  public static func inspect(
    _ bytes: Span<UInt8>, verifying: Bool = true, progress: (Int) -> Void = { _ in },
    visit: (Record) -> Void = { _ in }
  ) throws(CARError) -> RepositoryInspection {
    var inspector = RepositoryInspector()
    try inspector.readBlocks(bytes, verifying: verifying, progress: progress)
    inspector.readTree(bytes, visit: visit)
    return inspector.inspection
  }

  /// How many blocks the table of blocks has room for from the start, at most.
  private static let maximumExpected = 1 << 22

  private init() {}

  private mutating func readBlocks(
    _ bytes: Span<UInt8>, verifying: Bool, progress: (Int) -> Void
  ) throws(CARError) {
    let payload = try CARVersion2.payload(of: bytes)
    inspection.carVersion = payload == 0..<bytes.count ? 1 : 2
    let inner = bytes.extracting(0..<payload.upperBound)
    let header = try CARHeader(inner, at: payload.lowerBound)
    inspection.payload = payload
    inspection.header = header
    var cursor = CARCursor(header: header, payload: payload)
    var table = BlockTable()
    var batch = Batch()
    var batchCount = 0
    do throws(CARError) {
      while let (section, cid) = try cursor.next(in: bytes) {
        batch.add(section, cid)
        if batch.isFull {
          take(&batch, into: &table, bytes, verifying: verifying)
          batchCount += 1
          // The beginning tells how many there may be; to make room later takes longer.
          if batchCount <= 16, batchCount.nonzeroBitCount == 1 {
            let share = Double(payload.count) / Double(section.end - payload.lowerBound)
            table.reserve(
              Int(min(Double(table.count) * share * 1.15, Double(Self.maximumExpected))), in: bytes)
          }
          progress(section.end)
        }
      }
    } catch {
      inspection.carError = error
    }
    take(&batch, into: &table, bytes, verifying: verifying)
    inspection.blocks = table
  }

  /// Blocks that are taken together, for what each of them waits for is waited for once.
  private struct Batch {
    /// Enough to keep all lanes busy, and few enough for their bytes to be at hand still.
    private static let limit = 128 << 10

    private(set) var sections: [CARSection] = []
    private(set) var bodies: [Range<Int>] = []
    private(set) var cids: [CID] = []
    private var length = 0

    var isFull: Bool { length >= Self.limit }

    mutating func add(_ section: CARSection, _ cid: CID) {
      sections.append(section)
      bodies.append(section.bodyRange)
      cids.append(cid)
      // What is kept of a block has a length, too, or there could be millions of empty ones.
      length += section.bodyRange.count + 100
    }

    mutating func removeAll() {
      sections.removeAll(keepingCapacity: true)
      bodies.removeAll(keepingCapacity: true)
      cids.removeAll(keepingCapacity: true)
      length = 0
    }
  }

  /// Enters blocks in the table, looks at what they are, and compares them with their CIDs.
  private mutating func take(
    _ batch: inout Batch, into table: inout BlockTable, _ bytes: Span<UInt8>, verifying: Bool
  ) {
    if inspection.sectionCount == 0, let first = batch.cids.first {
      inspection.rootIsFirstBlock = first == inspection.header.roots.first
    }
    inspection.sectionCount += batch.cids.count
    var isNew = [Bool](repeating: false, count: batch.cids.count)
    table.insert(batch.sections, batch.cids, in: bytes) { index in
      isNew[index] = true
      // Looked at while its bytes are at hand: the tree comes to records in an order that memory does not like.
      let body = bytes.extracting(batch.bodies[index])
      return !MSTNode.isLikely(body) && scanner.isPlain(body) ? Role.plain : 0
    }
    var dagCBORCount = 0
    for cid in batch.cids {
      if cid.codec == .dagCBOR {
        dagCBORCount += 1
      } else {
        inspection.codecCounts[cid.codec, default: 0] += 1
      }
    }
    if dagCBORCount > 0 { inspection.codecCounts[.dagCBOR, default: 0] += dagCBORCount }
    // A block that comes again may be another than the first time, whatever its CID says.
    if verifying { verify(batch, isNew, bytes) }
    batch.removeAll()
  }

  /// Compares blocks with their CIDs.
  private mutating func verify(_ batch: Batch, _ isNew: [Bool], _ bytes: Span<UInt8>) {
    let digests = SHA256.digests(of: batch.bodies, in: bytes)
    for index in digests.indices {
      let body = bytes.extracting(batch.bodies[index])
      switch batch.cids[index].verify(body, hashedTo: digests[index]) {
      case .matches: break
      case .mismatch: inspection.mismatchedBlocks.append(batch.cids[index])
      case .cannotVerify: if isNew[index] { inspection.unverifiableBlockCount += 1 }
      }
    }
  }

  private mutating func readTree(_ bytes: Span<UInt8>, visit: (Record) -> Void) {
    do throws(RepositoryError) {
      try readCommit(bytes)
    } catch {
      inspection.commitError = error
      return
    }
    guard let commit = inspection.commit else { return }
    var blocks = inspection.blocks
    // One owner, or the first mark would copy it.
    inspection.blocks = BlockTable()
    var blobs = BlobTable()
    var walker = MSTWalker(root: commit.data)
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        guard let place = walker.place ?? blocks.place(of: cid, in: bytes) else {
          if distinctMissingNodes.insert(cid).inserted { inspection.missingNodes.append(cid) }
          walker.skip()
          continue
        }
        if blocks.marks(place) & Role.node != 0 {
          walker.skipRepeated()
        } else {
          blocks.mark(place, Role.node)
          inspection.nodeCount += 1
          walker.enter(bytes.extracting(blocks.body(place, in: bytes))) {
            blocks.place(of: $0, in: bytes)
          }
        }
      case .record(let cid):
        let body = readRecord(walker.key, cid, walker.place, &blocks, bytes, &blobs)
        visit(Record(key: walker.key, cid: cid, body: body))
      }
    }
    closeCollection()
    inspection.blobs = blobs
    inspection.treeDepth = walker.depth
    inspection.rootLayer = walker.rootLayer
    inspection.treeProblems = walker.problems
    inspection.treeProblemCount = walker.problemCount
    inspection.distinctRecordCount += distinctMissingRecords.count
    inspection.unreachableBlockCount = (0..<blocks.placeCount).count {
      blocks.isUsed($0) && blocks.marks($0) & Role.any == 0
    }
    inspection.blocks = blocks
  }

  private mutating func readCommit(_ bytes: Span<UInt8>) throws(RepositoryError) {
    guard let root = inspection.header.roots.first else { throw .noRoot }
    guard let place = inspection.blocks.place(of: root, in: bytes) else {
      throw .commitMissing(root)
    }
    inspection.blocks.mark(place, Role.commit)
    inspection.commit = try Commit(bytes.extracting(inspection.blocks.body(place, in: bytes)))
  }

  /// Counts a record, checks it and collects its blobs; answers where its block lies.
  private mutating func readRecord(
    _ key: [UInt8], _ cid: CID, _ place: Int?, _ blocks: inout BlockTable, _ bytes: Span<UInt8>,
    _ blobs: inout BlobTable
  ) -> Range<Int>? {
    inspection.recordCount += 1
    count(key)
    guard let place else {
      inspection.missingRecordCount += 1
      distinctMissingRecords.insert(cid)
      if inspection.missingRecords.count < RepositoryInspection.maximumListed {
        inspection.missingRecords.append(String(decoding: key, as: UTF8.self))
      }
      return nil
    }
    let body = blocks.body(place, in: bytes)
    let marks = blocks.marks(place)
    let isPlain = marks & Role.plain != 0
    if marks & Role.record == 0 {
      blocks.mark(place, Role.record)
      inspection.distinctRecordCount += 1
      if !isPlain { scan(key, bytes.extracting(body), &blobs) }
    } else if !isPlain, rescannedLength <= bytes.count - body.count {
      // The same block under another key is another record with the same blobs.
      rescannedLength += body.count
      scan(key, bytes.extracting(body), &blobs)
    }
    return body
  }

  private mutating func scan(
    _ key: [UInt8], _ record: Span<UInt8>, _ blobs: inout BlobTable
  ) {
    let oddities = scanner.scan(record) { blobs.insert($0, from: key) }
    if oddities.hasFloat { inspection.floatRecordCount += 1 }
    inspection.unreadable.count(oddities)
    if oddities.isNonCanonical { inspection.nonCanonicalRecordCount += 1 }
    inspection.recordWarningCount += oddities.count
    for why in oddities.first {
      if inspection.recordWarnings.count < RepositoryInspection.maximumListed {
        inspection.recordWarnings.append((String(decoding: key, as: UTF8.self), why))
      }
    }
  }

  /// Counts a record for its collection; the keys come in order, so a collection's records come together.
  private mutating func count(_ key: [UInt8]) {
    let name = collection.name
    if key.count > name.count, key[name.count] == UInt8(ascii: "/"),
      key.span.starts(with: name)
    {
      collection.count += 1
    } else {
      closeCollection()
      collection = (Array(key.prefix { $0 != UInt8(ascii: "/") }), 1)
    }
  }

  private mutating func closeCollection() {
    guard collection.count > 0 else { return }
    let name = String(decoding: collection.name, as: UTF8.self)
    inspection.recordsByCollection[name, default: 0] += collection.count
    collection = ([], 0)
  }
}
