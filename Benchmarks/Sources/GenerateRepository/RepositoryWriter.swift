import ATProtocol
import Foundation
import IPLD

/// Writes a repository: its records as they come, then the tree over them and the commit, then all
/// of it in order; and again after some have been added, changed or deleted.
///
/// Memory holds an index of some ninety bytes a record; the blocks lie in a file beside the output,
/// in the order in which they were made, until they are copied to where they belong.
struct RepositoryWriter: ~Copyable {
  private struct Record {
    let collection: Collection
    let key: TID?
    var place: PlacedBlock
  }

  private let scratch: URL
  private var file: SectionFile
  private var records: [Record] = []
  /// The first so many records arrived with the account, in one revision.
  private let importedCount: Int
  /// How many records have been written, changed or deleted: the number of the revision.
  private var operationCount = 0
  /// The revisions of the nodes of the tree that was written last.
  private var nodeRevisions: [SHA256Digest: UInt32] = [:]

  /// A writer whose blocks lie beside the file `output` for a while.
  init(beside output: URL, importedCount: Int) throws {
    self.importedCount = importedCount
    scratch = output.appendingPathExtension("blocks")
    file = try SectionFile(scratch)
  }

  /// How many records there are.
  var recordCount: Int { records.count }

  /// Writes a record; one without a key is called `self`.
  mutating func append(_ collection: Collection, _ key: TID?, _ value: IPLDValue) throws -> CID {
    operationCount += 1
    let place = try place(value)
    records.append(Record(collection: collection, key: key, place: place))
    return CID(codec: .dagCBOR, digest: place.digest)
  }

  /// Writes another value for a record.
  mutating func replace(_ index: Int, with value: IPLDValue) throws {
    operationCount += 1
    records[index].place = try place(value)
  }

  /// Deletes a record.
  mutating func remove(_ index: Int) {
    operationCount += 1
    records.remove(at: index)
  }

  /// Writes the tree and the commit, and all blocks in order, to `output`.
  mutating func write(
    to output: URL, did: String, revision: TID, signature: [UInt8], order: BlockOrder
  ) throws {
    var blocks = records.map(\.place)
    let root = try writeTree(&blocks)
    let commit = try place(
      .map([
        "did": .string(did), "version": .integer(3), "rev": .string(revision.text),
        "data": .link(root), "prev": .null, "sig": .bytes(signature),
      ]))
    blocks.append(commit)
    try file.flush()
    let bytes = try Data(contentsOf: scratch, options: .alwaysMapped)
    var car = try SectionFile(output)
    try car.append(Data(CARHeader(roots: [CID(codec: .dagCBOR, digest: commit.digest)]).bytes))
    switch order {
    case .server:
      blocks.sort(by: PlacedBlock.precedes)
      for block in blocks { try car.append(bytes[block.section]) }
    case .tree:
      try copyInTreeOrder(bytes, blocks, commit, root: root, to: &car)
    }
    try car.close()
  }

  /// Removes what lies beside the output.
  consuming func close() throws {
    try file.close()
    try FileManager.default.removeItem(at: scratch)
  }

  private var revision: UInt32 { UInt32(max(1, operationCount - importedCount)) }

  private mutating func place(_ value: IPLDValue) throws -> PlacedBlock {
    let bytes = try DAGCBOREncoder.encode(value)
    return try place(
      Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes), revision: revision)
  }

  private mutating func place(_ block: Block, revision: UInt32) throws -> PlacedBlock {
    guard let digest = block.cid.multihash.sha256 else { preconditionFailure("not SHA-256") }
    try file.append(block)
    return PlacedBlock(
      digest: digest, bodyOffset: file.length - block.bytes.count,
      bodyLength: Int32(block.bytes.count), revision: revision)
  }

  /// Writes the nodes, children before parents; answers the root.
  private mutating func writeTree(_ blocks: inout [PlacedBlock]) throws -> CID {
    var tree = MSTBuilder()
    var revisions = RevisionTracker()
    var nodes: [Block] = []
    let before = nodeRevisions
    nodeRevisions = [:]
    for collection in Collection.allCases {
      for record in records where record.collection == collection {
        let cid = CID(codec: .dagCBOR, digest: record.place.digest)
        let path = "\(collection.rawValue)/\(record.key?.text ?? "self")"
        tree.append(key: Array(path.utf8), value: cid) { nodes.append($0) }
        try place(&nodes, &revisions, before, &blocks)
        revisions.wrote(cid, in: record.place.revision)
      }
    }
    let root = tree.finish { nodes.append($0) }
    try place(&nodes, &revisions, before, &blocks)
    return root
  }

  private mutating func place(
    _ nodes: inout [Block], _ revisions: inout RevisionTracker,
    _ before: [SHA256Digest: UInt32], _ blocks: inout [PlacedBlock]
  ) throws {
    for node in nodes {
      var number = try revisions.revision(of: node)
      // A node that was there keeps its revision; one that a deletion has changed is as new as
      // that.
      if !before.isEmpty, let digest = node.cid.multihash.sha256 {
        number = before[digest] ?? revision
      }
      let placed = try place(node, revision: number)
      nodeRevisions[placed.digest] = number
      blocks.append(placed)
    }
    nodes.removeAll(keepingCapacity: true)
  }

  /// Copies the commit, then what a walk of the tree comes to.
  private func copyInTreeOrder(
    _ bytes: Data, _ blocks: [PlacedBlock], _ commit: PlacedBlock, root: CID,
    to car: inout SectionFile
  ) throws {
    let blocks = blocks.sorted { $0.digest < $1.digest }
    try car.append(bytes[commit.section])
    var walker = MSTWalker(root: root)
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        let block = Self.find(cid, in: blocks)
        try car.append(bytes[block.section])
        walker.enter(bytes.span.extracting(block.body))
      case .record(let cid): try car.append(bytes[Self.find(cid, in: blocks).section])
      }
    }
  }

  /// Looks a block up in `blocks`, which are sorted by digest.
  private static func find(_ cid: CID, in blocks: [PlacedBlock]) -> PlacedBlock {
    var (low, high) = (0, blocks.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if let digest = cid.multihash.sha256, blocks[middle].digest < digest {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return blocks[low]
  }
}
