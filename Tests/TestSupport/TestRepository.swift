internal import ATProtocol
package import IPLD

/// A small repository that a test makes up: records under their paths, the tree that follows from
/// them, and a commit.
///
/// Nothing is checked, so that it can hold what a real one never would: invalid records, invalid
/// keys.
package struct TestRepository: Sendable {
  /// The account.
  package var did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
  /// The revision; nil for a commit of version 2.
  package var rev: String? = "3lscuqc52or2x"
  /// Makes the revision a later one, as every commit of a server does.
  package mutating func advance() throws {
    guard let rev else { return }
    self.rev = TID(integer: try TID(rev).integer + 1 << 10).text
  }

  /// The records by their keys.
  package private(set) var records: [[UInt8]: [UInt8]] = [:]
  /// Blocks that the CAR carries though the tree does not lead to them.
  package var strays: [Block] = []
  /// The commit's signature.
  package var signature = [UInt8](repeating: 1, count: 64)
  /// CIDs whose blocks the CAR leaves out.
  package var omitted: Set<CID> = []

  /// A repository without records.
  package init() {}

  /// A repository of this many posts.
  ///
  /// - Parameter number: how many revisions came before it.
  package init(posts: Int, revision number: Int = 0) throws {
    for _ in 0..<number { try advance() }
    for number in 0..<posts {
      try add(
        "app.bsky.feed.post/3k\(1_000_000 + number)",
        [
          "$type": .string("app.bsky.feed.post"), "text": .string("post number \(number)"),
          "createdAt": .string("2024-01-01T00:00:00Z"),
        ])
    }
  }

  /// Adds a record.
  package mutating func add(_ path: String, _ record: IPLDMap) throws {
    add(path, bytes: try DAGCBOREncoder.encode(.map(record)))
  }

  /// Adds bytes as a record, whatever they are.
  package mutating func add(_ path: String, bytes: [UInt8]) { records[Array(path.utf8)] = bytes }

  /// Takes a record away.
  package mutating func remove(_ path: String) { records[Array(path.utf8)] = nil }

  /// Adds a post with an image.
  package mutating func add(
    _ path: String, blob: CID, mimeType: String = "image/png", size: Int = 100
  ) throws {
    try add(
      path,
      [
        "$type": .string("app.bsky.feed.post"),
        "image": .map([
          "$type": .string("blob"), "ref": .link(blob), "mimeType": .string(mimeType),
          "size": .integer(Int128(size)),
        ]),
      ])
  }

  /// The CID of the record with this path.
  package func cid(of path: String) -> CID? {
    records[Array(path.utf8)].map { CID(codec: .dagCBOR, hashing: $0.span) }
  }

  /// The commit, the nodes of the tree and the records, each once.
  package func blocks() throws -> [Block] {
    var builder = MSTBuilder()
    var nodes: [Block] = []
    var bodies: [Block] = []
    for (key, body) in records.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      let cid = CID(codec: .dagCBOR, hashing: body.span)
      bodies.append(Block(cid: cid, bytes: body))
      builder.append(key: key, value: cid) { nodes.append($0) }
    }
    let data = builder.finish { nodes.append($0) }
    var map: IPLDMap = [
      "did": .string(did), "version": .integer(rev == nil ? 2 : 3), "prev": .null,
      "data": .link(data), "sig": .bytes(signature),
    ]
    map["rev"] = rev.map { .string($0) }
    let commit = try DAGCBOREncoder.encode(.map(map))
    var seen: Set<CID> = []
    let all = [Block(cid: CID(codec: .dagCBOR, hashing: commit.span), bytes: commit)]
    return (all + nodes + bodies + strays).filter { seen.insert($0.cid).inserted }
  }

  /// The CAR, its commit first.
  package func car() throws -> [UInt8] {
    let blocks = try blocks()
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: [blocks[0].cid], to: &bytes)
    for block in blocks where !omitted.contains(block.cid) {
      CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes)
    }
    return bytes
  }
}
