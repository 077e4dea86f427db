import ATProtocol
import Archive
import IPLD
internal import Repository
internal import TestSupport

// Blocks made by hand, and what the suites ask about them.

extension CID {
  /// The CID of `bytes`.
  static func naming(_ bytes: [UInt8], codec: Codec = .dagCBOR) -> CID {
    CID(codec: codec, hashing: bytes.span)
  }

  /// An arbitrary CID, a different one for each number.
  static func example(_ number: Int = 0, codec: Codec = .dagCBOR) -> CID {
    naming(Array("example \(number)".utf8), codec: codec)
  }
}

extension IPLDValue {
  /// A link, or null.
  static func optionalLink(_ cid: CID?) -> IPLDValue { cid.map(IPLDValue.link) ?? .null }
}

/// The SHA-256 of lines, each ended by a line feed, in hexadecimal.
func digest(ofLines lines: [String]) -> String {
  SHA256.digest(of: Array(lines.map { $0 + "\n" }.joined().utf8).span).description
}

/// A key of the tree that begins with `t/` and `start`, and belongs to this layer.
func key(_ start: String, layer: Int = 0) -> [UInt8] {
  var number = 0
  while true {
    let key = Array("t/\(start)\(number)".utf8)
    if MSTLayer.layer(of: key.span) == layer { return key }
    number += 1
  }
}

/// Tree nodes that are written as they are told to be, whether that makes a tree or not.
struct HandMadeTree {
  struct Entry {
    var key: [UInt8]
    var value = CID.example()
    var right: CID?
    /// How much of the key is left out, if not all that the one before it has too.
    var sharing: Int?
  }

  private(set) var blocks: [CID: [UInt8]] = [:]

  /// Adds a node; returns its CID.
  mutating func add(left: CID? = nil, _ entries: Entry...) -> CID {
    add(left: left, entries: entries)
  }

  mutating func add(left: CID? = nil, entries: [Entry]) -> CID {
    var previous: [UInt8] = []
    var items: [IPLDValue] = []
    for entry in entries {
      let shared = entry.sharing ?? zip(previous, entry.key).prefix { $0 == $1 }.count
      items.append(
        .map([
          "k": .bytes(Array(entry.key.dropFirst(shared))), "p": .integer(Int128(shared)),
          "t": .optionalLink(entry.right), "v": .link(entry.value),
        ]))
      previous = entry.key
    }
    return add(.map(["e": .array(items), "l": .optionalLink(left)]))
  }

  /// Adds any value as a block.
  mutating func add(_ value: IPLDValue) -> CID {
    guard let bytes = try? DAGCBOREncoder.encode(value) else { preconditionFailure("depth") }
    return add(bytes)
  }

  /// Adds bytes as a block, under another name than theirs if one is given.
  mutating func add(_ bytes: [UInt8], as name: CID? = nil) -> CID {
    let cid = name ?? .naming(bytes)
    blocks[cid] = bytes
    return cid
  }

  /// Takes a block away.
  mutating func remove(_ cid: CID) { blocks[cid] = nil }

  /// What a walk comes to that enters every node it is asked to.
  func walk(from root: CID) -> Walk { Walk(from: root, in: blocks) }

  /// A CAR of these blocks with a commit on `data` in front.
  func car(data: CID) throws -> [UInt8] {
    let commit = try DAGCBOREncoder.encode(.map(exampleCommit(data: data)))
    let root = CID.naming(commit)
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: [root], to: &bytes)
    CARWriter.appendSection(root, commit.span, to: &bytes)
    for (cid, body) in blocks { CARWriter.appendSection(cid, body.span, to: &bytes) }
    return bytes
  }
}

/// A commit of version 3 without a fault.
func exampleCommit(data: CID = .example()) -> IPLDMap {
  [
    "did": .string("did:plc:ewvi7nxzyoun6zhxrhs64oiz"), "version": .integer(3),
    "rev": .string("3lscuqc52or2x"), "prev": .null, "data": .link(data),
    "sig": .bytes([UInt8](repeating: 1, count: 64)),
  ]
}

/// Everything that a walk gave out.
struct Walk {
  var leaves: [(key: [UInt8], value: CID)] = []
  var missing: [CID] = []
  var nodes: Set<CID> = []
  var enteredCount = 0
  let problems: [MSTProblem]
  let problemCount: Int
  let rootLayer: Int?
  let depth: Int

  init(from root: CID, in blocks: [CID: [UInt8]]) {
    var walker = MSTWalker(root: root)
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        if let bytes = blocks[cid] {
          nodes.insert(cid)
          enteredCount += 1
          walker.enter(bytes.span)
        } else {
          missing.append(cid)
          walker.skip()
        }
      case .record(let cid): leaves.append((walker.key, cid))
      }
    }
    problems = walker.problems
    problemCount = walker.problemCount
    rootLayer = walker.rootLayer
    depth = walker.depth
  }

  var kinds: [MSTProblem.Kind] { problems.map(\.kind) }
  var keys: [[UInt8]] { leaves.map(\.key) }
  var lines: [String] { leaves.map { "\(String(decoding: $0.key, as: UTF8.self)) \($0.value)" } }

  /// The root of a tree rebuilt from what was given out, and its nodes.
  func rebuilt() -> (root: CID, nodes: [CID: [UInt8]]) { build(leaves) }
}

/// The tree of these records.
func build(_ leaves: [(key: [UInt8], value: CID)]) -> (root: CID, nodes: [CID: [UInt8]]) {
  var builder = MSTBuilder()
  var nodes: [CID: [UInt8]] = [:]
  for leaf in leaves {
    builder.append(key: leaf.key, value: leaf.value) { nodes[$0.cid] = $0.bytes }
  }
  return (builder.finish { nodes[$0.cid] = $0.bytes }, nodes)
}

/// The blocks and the roots of a CAR.
func readCAR(_ bytes: [UInt8]) throws -> (roots: [CID], blocks: [CID: [UInt8]]) {
  let header = try CARHeader(bytes.span)
  var cursor = CARCursor(header: header, payload: 0..<bytes.count)
  var blocks: [CID: [UInt8]] = [:]
  while let (section, cid) = try cursor.next(in: bytes.span) {
    blocks[cid] = Array(bytes[section.bodyRange])
  }
  return (header.roots, blocks)
}

/// Inspects a CAR; a span cannot be passed through `#expect`.
func inspect(
  _ bytes: [UInt8], visit: (RepositoryInspection.Record) -> Void = { _ in }
) throws -> RepositoryInspection {
  RepositoryInspection(of: try CARFile(MappedFile(copying: bytes)), visit: visit)
}
