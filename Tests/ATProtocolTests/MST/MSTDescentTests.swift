import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A page of a tree` {
  private let leaves: [(key: [UInt8], value: CID)]
  private let root: CID
  private let nodes: [CID: [UInt8]]

  init() {
    var keys: [String] = []
    for number in 0..<700 {
      keys.append("app.bsky.feed.post/3k\(100_000 + number * 7)")
      keys.append("app.bsky.feed.like/3k\(100_000 + number * 11)")
    }
    leaves = keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }.map {
      let key = Array($0.utf8)
      return (key, CID(codec: .dagCBOR, hashing: key.span))
    }
    (root, nodes) = build(leaves)
  }

  /// What comes after a bound.
  private func walk(
    _ direction: MSTDescent.Direction, after bound: [UInt8]?, limit: Int = .max
  ) throws -> [[UInt8]] {
    var descent = MSTDescent(root: root, direction, after: bound)
    var found: [[UInt8]] = []
    while found.count < limit, let (key, cid) = try descent.next({ nodes[$0] }) {
      #expect(cid == CID(codec: .dagCBOR, hashing: key.span))
      found.append(key)
    }
    return found
  }

  @Test func `has all keys in either direction`() throws {
    #expect(try walk(.ascending, after: nil) == leaves.map(\.key))
    #expect(try walk(.descending, after: nil) == leaves.map(\.key).reversed())
  }

  @Test func `begins behind any key, be it in the tree or not`() throws {
    var generator = SeededGenerator()
    for _ in 0..<300 {
      var bound = leaves[Int.random(in: 0..<leaves.count, using: &generator)].key
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: bound.append(0x30)
      case 1: bound.removeLast()
      case 2: bound[bound.count - 1] = .random(in: 0...255, using: &generator)
      default: break
      }
      let behind = leaves.map(\.key).filter { bound.lexicographicallyPrecedes($0) }
      let before = leaves.map(\.key).filter { $0.lexicographicallyPrecedes(bound) }
      #expect(try walk(.ascending, after: bound, limit: 20) == Array(behind.prefix(20)))
      #expect(
        try walk(.descending, after: bound, limit: 20) == Array(before.reversed().prefix(20)))
    }
    #expect(try walk(.ascending, after: leaves.last?.key).isEmpty)
    #expect(try walk(.descending, after: leaves.first?.key).isEmpty)
    #expect(try walk(.ascending, after: []) == leaves.map(\.key))
  }

  @Test func `reads the nodes on the way to it and no others`() throws {
    var descent = MSTDescent(root: root, .descending, after: Array("app.bsky.feed.like0".utf8))
    var reads = 0
    for _ in 0..<10 {
      _ = try descent.next {
        reads += 1
        return nodes[$0]
      }
    }
    #expect(reads < 20 && nodes.count > 300, "\(reads) of \(nodes.count)")
  }

  @Test func `ends at a node that is not there, or is none`() throws {
    let lost = try #require(nodes.keys.first { $0 != root })
    var descent = MSTDescent(root: root, .ascending)
    #expect(throws: MSTProblem(kind: .missing, node: lost, key: nil)) {
      while try descent.next({ $0 == lost ? nil : nodes[$0] }) != nil {}
    }
    descent = MSTDescent(root: root, .ascending)
    let malformed = MSTProblem.Kind.malformedNode(MSTNode.Malformed(reason: .truncated, offset: 0))
    #expect(throws: MSTProblem(kind: malformed, node: lost, key: nil)) {
      while try descent.next({ $0 == lost ? [0xa0] : nodes[$0] }) != nil {}
    }
  }

  @Test func `ends at keys that are not in order`() throws {
    // A node whose right subtree holds what came before.
    let node = try #require(nodes[root])
    let value = CID(codec: .dagCBOR, hashing: [1].span)
    func entry(_ key: String, _ right: CID?) -> IPLDValue {
      .map([
        "k": .bytes(Array(key.utf8)), "p": .integer(0), "v": .link(value),
        "t": right.map { .link($0) } ?? .null,
      ])
    }
    let top = try DAGCBOREncoder.encode(
      .map(["l": .null, "e": .array([entry("app.bsky.feed.post/3z", root)])]))
    let topCID = CID(codec: .dagCBOR, hashing: top.span)
    var descent = MSTDescent(root: topCID, .ascending)
    // Nothing in the subtree comes after the bound, as the descent sees it.
    var keys = 0
    while try descent.next({ $0 == topCID ? top : $0 == root ? node : nodes[$0] }) != nil {
      keys += 1
    }
    #expect(keys == 1)
  }

  @Test func `costs no more than its depth where nodes lead to one another twice`() throws {
    // Sixty levels, each leading twice to the next, would take 2^60 steps.
    var blocks: [CID: [UInt8]] = [:]
    var next: CID?
    let value = CID(codec: .dagCBOR, hashing: [1].span)
    for _ in 0..<60 {
      let link: IPLDValue = next.map { .link($0) } ?? .null
      let entry: IPLDValue = .map([
        "k": .bytes(Array("a.b.c/x".utf8)), "p": .integer(0), "v": .link(value), "t": link,
      ])
      let bytes = try DAGCBOREncoder.encode(.map(["l": link, "e": .array([entry])]))
      let cid = CID(codec: .dagCBOR, hashing: bytes.span)
      blocks[cid] = bytes
      next = cid
    }
    var descent = MSTDescent(root: try #require(next), .ascending, after: Array("a.b.c/x".utf8))
    var reads = 0
    let found = try descent.next {
      reads += 1
      return blocks[$0]
    }
    #expect(found == nil && reads == 60)
  }

  @Test func `gives up a path that is deeper than any key`() throws {
    var blocks: [CID: [UInt8]] = [:]
    var next: CID?
    for _ in 0..<200 {
      let link: IPLDValue = next.map { .link($0) } ?? .null
      let bytes = try DAGCBOREncoder.encode(.map(["l": link, "e": .array([])]))
      let cid = CID(codec: .dagCBOR, hashing: bytes.span)
      blocks[cid] = bytes
      next = cid
    }
    var descent = MSTDescent(root: try #require(next), .ascending)
    let problem = #expect(throws: MSTProblem.self) { try descent.next { blocks[$0] } }
    #expect(problem?.kind == .tooDeep)
  }
}
