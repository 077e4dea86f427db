import ATProtocol
import Foundation
import IPLD

/// Writes a repository: its records as they come, then the tree over them and the commit, then all of it in order.
///
/// Memory holds an index of some ninety bytes a record; the blocks lie in a file beside the output, in the order in which
/// they were made, until they are copied to where they belong.
struct RepositoryWriter: ~Copyable {
  private struct Record {
    let collection: Collection
    let key: TID?
    let digest: SHA256Digest
  }

  private let output: URL
  private let scratch: URL
  private var file: SectionFile
  private var records: [Record] = []
  private var blocks: [PlacedBlock] = []
  /// The first so many records arrived with the account, in one revision.
  private let importedCount: Int

  /// A writer of the repository `output`.
  init(_ output: URL, importedCount: Int) throws {
    self.output = output
    self.importedCount = importedCount
    scratch = output.appendingPathExtension("blocks")
    file = try SectionFile(scratch)
  }

  /// Writes a record; one without a key is called `self`.
  mutating func append(_ collection: Collection, _ key: TID?, _ value: IPLDValue) throws -> CID {
    let bytes = try DAGCBOREncoder.encode(value)
    let block = Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
    let place = try place(block, revision: revision(ofRecord: records.count))
    records.append(Record(collection: collection, key: key, digest: place.digest))
    return block.cid
  }

  /// Writes the tree and the commit, and puts all blocks in order.
  consuming func finish(did: String, revision: TID, signature: [UInt8], order: BlockOrder) throws {
    let root = try writeTree()
    let commit = try writeCommit([
      "did": .string(did), "version": .integer(3), "rev": .string(revision.text),
      "data": .link(root), "prev": .null, "sig": .bytes(signature),
    ])
    try file.close()
    let bytes = try Data(contentsOf: scratch, options: .alwaysMapped)
    defer { try? FileManager.default.removeItem(at: scratch) }
    var car = try SectionFile(output)
    try car.append(Data(CARHeader(roots: [commit.cid]).bytes))
    switch order {
    case .server:
      blocks.sort(by: PlacedBlock.precedes)
      for block in blocks { try car.append(bytes[block.section]) }
    case .tree:
      try copyInTreeOrder(bytes, commit.place, root: root, to: &car)
    }
    try car.close()
  }

  private func revision(ofRecord index: Int) -> UInt32 {
    UInt32(max(0, index - importedCount + 1))
  }

  private mutating func place(_ block: Block, revision: UInt32) throws -> PlacedBlock {
    guard let digest = block.cid.multihash.sha256 else { preconditionFailure("not SHA-256") }
    try file.append(block)
    let place = PlacedBlock(
      digest: digest, bodyOffset: file.length - block.bytes.count,
      bodyLength: Int32(block.bytes.count), revision: revision)
    blocks.append(place)
    return place
  }

  /// Writes the nodes, children before parents; answers the root.
  private mutating func writeTree() throws -> CID {
    var tree = MSTBuilder()
    var revisions = RevisionTracker()
    var nodes: [Block] = []
    for collection in Collection.allCases {
      for index in records.indices where records[index].collection == collection {
        let record = records[index]
        let cid = CID(codec: .dagCBOR, digest: record.digest)
        let path = "\(collection.rawValue)/\(record.key?.text ?? "self")"
        tree.append(key: Array(path.utf8), value: cid) { nodes.append($0) }
        try place(&nodes, &revisions)
        revisions.wrote(cid, in: revision(ofRecord: index))
      }
    }
    let root = tree.finish { nodes.append($0) }
    try place(&nodes, &revisions)
    return root
  }

  private mutating func place(_ nodes: inout [Block], _ revisions: inout RevisionTracker) throws {
    for node in nodes { _ = try place(node, revision: try revisions.revision(of: node)) }
    nodes.removeAll(keepingCapacity: true)
  }

  private mutating func writeCommit(_ commit: IPLDMap) throws -> (cid: CID, place: PlacedBlock) {
    let bytes = try DAGCBOREncoder.encode(.map(commit))
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    let place = try place(
      Block(cid: cid, bytes: bytes), revision: revision(ofRecord: records.count - 1))
    return (cid, place)
  }

  /// Copies the commit, then what a walk of the tree comes to.
  private mutating func copyInTreeOrder(
    _ bytes: Data, _ commit: PlacedBlock, root: CID, to car: inout SectionFile
  ) throws {
    blocks.sort { $0.digest < $1.digest }
    try car.append(bytes[commit.section])
    var walker = MSTWalker(root: root)
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        let block = find(cid)
        try car.append(bytes[block.section])
        walker.enter(bytes.span.extracting(block.body))
      case .record(let cid): try car.append(bytes[find(cid).section])
      }
    }
  }

  /// Looks a block up in `blocks`, once they are sorted by digest.
  private func find(_ cid: CID) -> PlacedBlock {
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
