internal import IPLD

/// Walks a tree, or a part of one, and finds out what its nodes and records are.
///
/// The parts of a tree can be read by several readers, on several cores, and what they have found
/// be put together.
struct TreeReader: Sendable {
  /// What is found out, as far as it is about the tree.
  private(set) var inspection = RepositoryInspection()
  /// The places in the table of the nodes and of the records that were reached.
  private(set) var nodes: BlockSet
  private(set) var records: BlockSet
  /// How many bytes of records have been scanned, the same block under another key among them.
  private(set) var scannedLength = 0

  private let blocks: BlockTable
  private var scanner = RecordScanner()
  private var distinctMissingNodes: Set<CID> = []
  private var distinctMissingRecords: Set<CID> = []
  /// How many bytes of records have been scanned again for another key; never more than the CAR
  /// has, or one block with a million keys would take a million times as long as it should.
  private var rescannedLength = 0
  private var collection: (name: [UInt8], count: Int) = ([], 0)

  /// A reader of the tree whose blocks are in this table.
  init(_ blocks: BlockTable) {
    self.blocks = blocks
    nodes = BlockSet(count: blocks.placeCount)
    records = nodes
  }

  /// Reads a whole tree from its root.
  static func read(
    root: CID, _ blocks: BlockTable, _ bytes: Span<UInt8>,
    visit: (RepositoryInspector.Record) -> Void
  ) -> (TreeReader, MSTWalker) {
    var (reader, walker) = (TreeReader(blocks), MSTWalker(root: root))
    reader.read(&walker, bytes, visit: visit)
    return (reader, walker)
  }

  /// Walks all that a walker comes to.
  mutating func read(
    _ walker: inout MSTWalker, _ bytes: Span<UInt8>, visit: (RepositoryInspector.Record) -> Void
  ) {
    while let step = walker.next() {
      switch step {
      case .node(let cid): enter(cid, &walker, bytes)
      case .record(let cid):
        let body = read(walker.key, cid, walker.place, bytes)
        visit(RepositoryInspector.Record(key: walker.key, cid: cid, body: body))
      }
    }
  }

  /// Enters the node that a walker asks for, if there is such a block that was not entered yet.
  mutating func enter(_ cid: CID, _ walker: inout MSTWalker, _ bytes: Span<UInt8>) {
    guard let place = walker.place ?? blocks.place(of: cid, in: bytes) else {
      if distinctMissingNodes.insert(cid).inserted { inspection.missingNodes.append(cid) }
      walker.skip()
      return
    }
    guard !nodes.contains(place) else {
      walker.skipRepeated()
      return
    }
    nodes.insert(place)
    walker.enter(bytes.extracting(blocks.body(place, in: bytes))) {
      blocks.appendPlaces(of: $0, to: &$1, in: bytes)
    }
  }

  /// Counts a record, checks it and collects its blobs; answers where its block lies.
  @discardableResult
  mutating func read(_ key: [UInt8], _ cid: CID, _ place: Int?, _ bytes: Span<UInt8>) -> Range<Int>?
  {
    inspection.recordCount += 1
    count(key)
    guard let place else {
      inspection.missingRecordCount += 1
      distinctMissingRecords.insert(cid)
      inspection.list(missing: String(decoding: key, as: UTF8.self))
      return nil
    }
    let body = blocks.body(place, in: bytes)
    let isPlain = blocks.marks(place) & CARIntake.plain != 0
    if !records.contains(place) {
      records.insert(place)
      if !isPlain { scan(key, bytes.extracting(body)) }
    } else if !isPlain, rescannedLength <= bytes.count - body.count {
      // The same block under another key is another record with the same blobs.
      rescannedLength += body.count
      scan(key, bytes.extracting(body))
    }
    return body
  }

  private mutating func scan(_ key: [UInt8], _ record: Span<UInt8>) {
    scannedLength += record.count
    let oddities = scanner.scan(record) { inspection.blobs.insert($0, from: key) }
    guard oddities.count > 0 else { return }
    if oddities.hasFloat { inspection.floatRecordCount += 1 }
    inspection.unreadable.count(oddities)
    if oddities.isNonCanonical { inspection.nonCanonicalRecordCount += 1 }
    inspection.recordWarningCount += oddities.count
    for why in oddities.first {
      inspection.list(warning: why, of: String(decoding: key, as: UTF8.self))
    }
  }

  /// Counts a record for its collection; the keys come in order, so a collection's records come
  /// together.
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

  // MARK: Putting together

  /// Takes over what another reader has found in a part that follows.
  mutating func add(_ other: TreeReader) {
    closeCollection()
    var part = other
    part.closeCollection()
    inspection.add(part.inspection)
    nodes.formUnion(part.nodes)
    records.formUnion(part.records)
    distinctMissingNodes.formUnion(part.distinctMissingNodes)
    distinctMissingRecords.formUnion(part.distinctMissingRecords)
    scannedLength += part.scannedLength
    rescannedLength += part.rescannedLength
  }

  /// Ends the reading; enters what was found in an inspection.
  ///
  /// - Parameters:
  ///   - walker: what has walked the tree from its root.
  ///   - commit: the place of the commit.
  ///   - result: the inspection.
  consuming func finish(
    _ walker: MSTWalker, commit: Int, into result: inout RepositoryInspection
  ) {
    closeCollection()
    result.add(inspection)
    result.nodeCount = nodes.count
    result.distinctRecordCount = records.count + distinctMissingRecords.count
    result.treeDepth = walker.depth
    result.rootLayer = walker.rootLayer
    result.treeProblems = walker.problems
    result.treeProblemCount = walker.problemCount
    records.formUnion(nodes)
    records.insert(commit)
    result.unreachableBlockCount = blocks.count - records.count
  }
}

extension RepositoryInspection {
  /// Lists a record whose block is missing, if the list has room.
  fileprivate mutating func list(missing record: String) {
    if missingRecords.count < Self.maximumListed { missingRecords.append(record) }
  }

  /// Lists what is odd about a record, if the list has room.
  fileprivate mutating func list(warning why: String, of record: String) {
    if recordWarnings.count < Self.maximumListed { recordWarnings.append((record, why)) }
  }

  /// Adds what was found in a part of the tree that follows.
  fileprivate mutating func add(_ part: RepositoryInspection) {
    missingNodes += part.missingNodes
    recordCount += part.recordCount
    recordsByCollection.merge(part.recordsByCollection, uniquingKeysWith: +)
    for record in part.missingRecords { list(missing: record) }
    missingRecordCount += part.missingRecordCount
    for (record, why) in part.recordWarnings { list(warning: why, of: record) }
    unreadable.add(part.unreadable)
    nonCanonicalRecordCount += part.nonCanonicalRecordCount
    floatRecordCount += part.floatRecordCount
    recordWarningCount += part.recordWarningCount
    blobs.add(part.blobs)
  }
}
