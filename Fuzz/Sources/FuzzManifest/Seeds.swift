import FuzzSupport
import IPLD

/// Honest archives to begin with, of one record and of everything that a manifest can lead to.
extension FuzzManifest {
  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    var seeds: [[UInt8]] = []
    for order in [inline, paged] {
      for isRich in [false, true] {
        let (first, head) = try snapshots(order: order, isRich: isRich)
        seeds.append(LinkedBlocks.encode(first))
        seeds.append(LinkedBlocks.encode(head))
      }
    }
    return seeds
  }

  private typealias Raw = (bytes: [UInt8], isRaw: Bool)
  private static let did = "did:plc:w3pvxhp5ga2ax32lkbfrxakv"
  private static let time = "2026-01-02T03:04:05Z"

  /// The commit, the node and the record, in runs of positions.
  private static let runs: [UInt8] = [4, 1, 3, 1, 3, 1]

  private static func inline(_ blocks: inout [Raw]) throws -> IPLDMap {
    ["kind": .string("absolute"), "runs": .bytes(runs)]
  }

  private static func paged(_ blocks: inout [Raw]) throws -> IPLDMap {
    blocks += [(Array(runs.prefix(3)), true), (Array(runs.suffix(3)), true)]
    let pages = try [2, 1].map { try LinkedBlocks.link(to: blocks.count - $0, 0x55) }
    return ["kind": .string("absolute"), "pages": .array(pages)]
  }

  /// The blocks of an archive with one snapshot, and with another behind it.
  private static func snapshots(
    order: (inout [Raw]) throws -> IPLDMap, isRich: Bool
  ) throws -> ([Raw], [Raw]) {
    var blocks: [Raw] = []
    func add(_ map: IPLDMap) throws { blocks.append((try DAGCBOREncoder.encode(.map(map)), false)) }
    let absent = try LinkedBlocks.link(to: 250, 0x55)
    let blob: IPLDMap = [
      "$type": .string("blob"), "mimeType": .string("image/png"), "size": .integer(4),
      "ref": absent,
    ]
    try add(["$type": .string("app.bsky.actor.profile"), "avatar": .map(blob)])
    let entry: IPLDMap = [
      "p": .integer(0), "k": .bytes(Array("app.bsky.actor.profile/self".utf8)), "t": .null,
      "v": try LinkedBlocks.link(to: 0),
    ]
    try add(["l": .null, "e": .array([.map(entry)])])
    try add([
      "did": .string(did), "rev": .string("3lbcqlzz3rk2a"), "version": .integer(3), "prev": .null,
      "data": try LinkedBlocks.link(to: 1), "sig": .bytes([UInt8](repeating: 7, count: 64)),
    ])
    let header = try DAGCBOREncoder.encode(
      .map([
        "version": .integer(1), "roots": .array([try LinkedBlocks.link(to: 2)]),
      ]))
    let length = blocks.reduce(header.count + 1) { sum, block in
      sum + block.bytes.count + 36 + (block.bytes.count + 36 > 127 ? 2 : 1)
    }
    var manifest: IPLDMap = [
      "carpack": .integer(1), "did": .string(did), "handle": .string("alice.example.com"),
      "rev": .string("3lbcqlzz3rk2a"), "commit": try LinkedBlocks.link(to: 2), "prev": .null,
      "createdAt": .string(time), "tool": .string("carpack 0.1.0"), "complete": .boolean(true),
      "counts": .map([
        "records": .integer(1), "nodes": .integer(1), "blocks": .integer(3),
        "recordBlocks": .integer(1),
      ]),
      "blobs": .map([
        "referenced": .integer(1), "held": .integer(0), "heldBytes": .integer(0),
        "missing": .integer(1), "extras": .integer(0), "extrasBytes": .integer(0),
        "listed": .integer(3), "listedMissing": .integer(1), "accepted": .integer(1),
        "new": .integer(0), "newBytes": .integer(0),
        "listFault": .map(["reason": .string("server-error"), "transient": .boolean(true)]),
      ]),
      "host": .map(["os": .string("Linux"), "durationMs": .integer(5)]),
      "fetched": .map([
        "repoRev": .string("3lbcqlzz3rk2a"),
        "leftOut": .map(["blocks": .integer(1), "bytes": .integer(100)]),
      ]),
      "unreadable": .map(["records": .integer(0), "partlySearched": .integer(0)]),
    ]
    if isRich { try enrich(&manifest, &blocks, absent) }
    manifest["car"] = .map([
      "header": .bytes([UInt8(header.count)] + header), "bytes": .integer(Int128(length)),
      "blocks": .integer(3), "order": .map(try order(&blocks)),
    ])
    try add(manifest)
    let first = blocks
    let base = try LinkedBlocks.link(to: blocks.count - 1)
    manifest["prev"] = base
    manifest["doubts"] = .array([.string("rollback"), .string("fork")])
    manifest["accepted"] = .array([.string("fork")])
    manifest["car"] = .map([
      "header": .bytes([UInt8(header.count)] + header), "bytes": .integer(Int128(length)),
      "blocks": .integer(3),
      "order": .map([
        "kind": .string("relative"), "base": base, "first": .integer(0), "runs": .bytes([0, 3]),
      ]),
    ])
    try add(manifest)
    return (first, blocks)
  }

  /// Adds documents, pages and private data.
  private static func enrich(
    _ manifest: inout IPLDMap, _ blocks: inout [Raw], _ absent: IPLDValue
  ) throws {
    func add(_ value: IPLDValue) throws -> IPLDValue {
      blocks.append((try DAGCBOREncoder.encode(value), false))
      return try LinkedBlocks.link(to: blocks.count - 1)
    }
    func addRaw(_ text: String) throws -> IPLDValue {
      blocks.append((Array(text.utf8), true))
      return try LinkedBlocks.link(to: blocks.count - 1, 0x55)
    }
    manifest["identity"] = .map([
      "didDocument": try addRaw("{\"id\":\"\(did)\"}"), "plcLog": try addRaw("[]"),
    ])
    let extra = try addRaw("extra")
    manifest["extras"] = .array([try add(.array([extra]))])
    let acceptance: IPLDMap = ["date": .string(time), "reason": .string("gone")]
    let missing: IPLDMap = [
      "cid": absent, "reason": .string("not-found"), "status": .integer(404), "size": .integer(4),
      "firstTried": .string(time), "lastTried": .string(time), "accepted": .map(acceptance),
    ]
    let listed: IPLDMap = [
      "cid": try LinkedBlocks.link(to: 251, 0x55), "reason": .string("no-answer"),
      "referenced": .boolean(false),
    ]
    manifest["missing"] = .array([try add(.array([.map(missing), .map(listed)]))])
    let piece = try add(.map(["carpackPrivate": .bytes(Array("{\"preferences\":[]}".utf8))]))
    let method: IPLDMap = [
      "endpoint": .string("app.bsky.actor.getPreferences"), "fetchedAt": .string(time),
      "contentType": .string("application/json"), "answers": .array([.array([piece])]),
      "bytes": .integer(18),
      "fault": .map(["kind": .string("not-whole"), "why": .string("the last page did not come")]),
    ]
    manifest["private"] = try add(
      .map(["did": .string(did), "carpackPrivate": .array([.map(method)])]))
  }
}
