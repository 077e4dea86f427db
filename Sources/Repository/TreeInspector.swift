internal import ATProtocol
internal import IPLD

/// Walks a tree, or a part of one, and finds out what its nodes and records are.
///
/// The parts of a tree can be read by several, on several cores, and what they have found be put
/// together.
struct TreeInspector<Source: BlockSource>: Sendable {
  /// What is found out, as far as it is about the tree.
  private(set) var inspection = RepositoryInspection()
  /// The nodes and the records that were reached.
  var nodes: BlockSet
  private var records: BlockSet
  /// How many bytes of records have been scanned, the same block under another key among them.
  private(set) var scannedLength = 0

  private let source: Source
  private var scanner = RecordScanner()
  private var distinctMissingRecords: Set<CID> = []
  private var rescannedLength = 0
  private var collection: (name: [UInt8], count: Int) = ([], 0)

  /// A reader of the tree whose blocks are in a source.
  init(_ source: Source) {
    self.source = source
    nodes = BlockSet(count: source.numberLimit)
    records = nodes
  }

  /// Reads all that a walk comes to; returns how it ended.
  mutating func read(
    _ walker: MSTWalker, visit: (RepositoryInspection.Record) -> Void = { _ in }
  ) -> MSTWalker {
    var fold = TreeFold(source, walker, nodes: nodes)
    // The walk alone has them, so that none is copied.
    nodes = BlockSet(count: 0)
    while let step = fold.next() {
      switch step {
      case .record(let cid, let number):
        read(fold.key, cid, number)
        visit((fold.key, cid, number))
      case .missingNode(let cid): inspection.missingNodes.append(cid)
      case .node, .subtree: break
      }
    }
    nodes = fold.nodes
    return fold.walker
  }

  /// Counts a record, checks it and collects its blobs.
  mutating func read(_ key: [UInt8], _ cid: CID, _ number: Int?) {
    inspection.recordCount += 1
    count(key)
    guard let number else {
      inspection.missingRecordCount += 1
      distinctMissingRecords.insert(cid)
      inspection.list(missing: String(decoding: key, as: UTF8.self))
      return
    }
    let isNew = !records.contains(number)
    records.insert(number)
    let source = source
    switch source.kind(number) {
    case .plainRecord: return
    case .other:
      guard isNew else { return }
      inspection.recordWarningCount += 1
      return inspection.list(
        warning: "it is not DAG-CBOR", of: String(decoding: key, as: UTF8.self))
    case .kept: break
    }
    source.withBody(number) { body in
      // The same block under another key is another record with the same blobs. How many bytes are
      // scanned again is limited, or one block with a million keys would take a million times as
      // long as it should.
      guard !isNew else { return scan(key, body) }
      guard rescannedLength <= source.byteCount - body.count else { return }
      rescannedLength += body.count
      scan(key, body)
    }
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

  /// Takes over what another has found in a part that follows.
  mutating func add(_ other: TreeInspector) {
    closeCollection()
    var part = other
    part.closeCollection()
    inspection.add(part.inspection)
    nodes.formUnion(part.nodes)
    records.formUnion(part.records)
    distinctMissingRecords.formUnion(part.distinctMissingRecords)
    scannedLength += part.scannedLength
    rescannedLength += part.rescannedLength
  }

  /// Ends the reading; enters what was found in an inspection.
  ///
  /// - Parameters:
  ///   - walker: what has walked the tree from its root.
  ///   - commit: the block of the commit.
  ///   - result: the inspection.
  mutating func finish(
    _ walker: MSTWalker, from commit: Int, into result: inout RepositoryInspection
  ) {
    closeCollection()
    result.add(inspection)
    result.nodeCount = nodes.count
    result.distinctRecordCount = records.count + distinctMissingRecords.count
    result.treeDepth = walker.depth
    result.rootLayer = walker.rootLayer
    result.treeProblems = walker.problems
    result.treeProblemCount = walker.problemCount
    result.reached = nodes
    result.reached.formUnion(records)
    result.reached.insert(commit)
    result.unreachableBlockCount = result.distinctBlockCount - result.reached.count
  }
}

extension RepositoryInspection {
  /// Lists a record whose block is missing, if the list has room.
  mutating func list(missing record: String, limit: Int = maximumListed) {
    if missingRecords.count < limit { missingRecords.append(record) }
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
