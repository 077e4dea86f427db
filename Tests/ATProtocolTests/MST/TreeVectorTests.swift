import ATProtocol
import Foundation
import IPLD
import TestSupport
import Testing

/// The conformance vectors on the tree: which layer, which prefix, which root.
@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Tree conformance vectors` {
  private static let folder = "atproto-interop-tests"

  struct KeyHeight: Decodable, Sendable {
    let key: String
    let height: Int
  }

  struct CommonPrefix: Decodable, Sendable {
    let left: String
    let right: String
    let len: Int
  }

  struct CommitProof: Decodable, Sendable {
    let comment: String
    let leafValue: String
    let keys: [String]
    let adds: [String]
    let dels: [String]
    let rootBeforeCommit: String
    let rootAfterCommit: String
    let blocksInProof: [String]
  }

  @Test func `a key belongs to the layer of its hash`() throws {
    let vectors = try Corpus.json("\(Self.folder)/mst/key_heights.json", as: [KeyHeight].self)
    #expect(!vectors.isEmpty)
    for vector in vectors {
      #expect(MSTLayer.layer(of: vector.key.utf8.span) == vector.height, "\(vector.key)")
    }
  }

  @Test func `the example keys belong to the layers that they name`() throws {
    let keys = try Corpus.text("\(Self.folder)/mst/example_keys.txt").split(separator: "\n")
    #expect(!keys.isEmpty)
    for key in keys {
      #expect(MSTLayer.layer(of: Array(key.utf8).span) == key.dropFirst().first?.wholeNumberValue)
    }
    let leaves = keys.sorted().map { (key: Array($0.utf8), value: CID.example()) }
    let (root, nodes) = build(leaves)
    let walk = Walk(from: root, in: nodes)
    #expect(walk.keys == leaves.map(\.key))
    #expect(walk.problems == [])
    #expect(walk.missing == [])
    #expect(walk.nodes.count == nodes.count)
    #expect(walk.rootLayer == leaves.map { MSTLayer.layer(of: $0.key.span) }.max())
  }

  @Test func `a key shares with the one before it as many bytes as they have in common`() throws {
    let vectors = try Corpus.json("\(Self.folder)/mst/common_prefix.json", as: [CommonPrefix].self)
    var checked = 0
    for vector in vectors {
      let (left, right) = (Array(vector.left.utf8), Array(vector.right.utf8))
      // Only keys in one node, and in order, are compressed against each other.
      guard left.lexicographicallyPrecedes(right),
        MSTLayer.layer(of: left.span) == MSTLayer.layer(of: right.span)
      else { continue }
      let (root, nodes) = build([(left, .example()), (right, .example())])
      let bytes = try #require(nodes[root])
      let node = try MSTNode(bytes.span)
      #expect(node.entries.last?.prefixLength == vector.len, "\(vector)")
      #expect(node.suffixes == left + right.dropFirst(vector.len))
      checked += 1
    }
    #expect(checked > 0)
  }

  @Test func `a commit's adds and dels lead from one root to the other`() throws {
    let vectors = try Corpus.json(
      "\(Self.folder)/firehose/commit-proof-fixtures.json", as: [CommitProof].self)
    #expect(!vectors.isEmpty)
    for vector in vectors {
      let value = try CID(vector.leafValue)
      let before = Set(vector.keys)
      let after = before.union(vector.adds).subtracting(vector.dels)
      let trees = [before, after].map { keys in
        build(keys.sorted().map { (Array($0.utf8), value) })
      }
      #expect(trees[0].root.description == vector.rootBeforeCommit, "\(vector.comment)")
      #expect(trees[1].root.description == vector.rootAfterCommit, "\(vector.comment)")
      for (keys, tree) in zip([before, after], trees) {
        let walk = Walk(from: tree.root, in: tree.nodes)
        #expect(walk.problems == [])
        #expect(walk.keys.map { String(decoding: $0, as: UTF8.self) } == keys.sorted())
      }
      let built = Set(trees[1].nodes.keys.map(\.description))
      #expect(built.isSuperset(of: vector.blocksInProof), "\(vector.comment)")
    }
  }
}

/// The trees of the MST test suite, each the only one of its keys.
@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Trees of the MST test suite` {
  struct Expected: Decodable, Sendable {
    let root: String
    let mst_node_count: Int
    let record_count: Int
    let root_layer: Int?
    let records_sha256: String
  }

  /// Every CAR by its path, in each folder that has a file of what to expect.
  static let cars: [(path: String, expected: Expected)] = Corpus.files(
    under: "mst-test-suite", suffix: "cars.expected.json"
  ).flatMap { list -> [(String, Expected)] in
    let folder = "mst-test-suite"
    guard let all = try? Corpus.json(list, as: [String: Expected].self) else { return [] }
    return Corpus.files(under: folder, suffix: ".car").compactMap { path in
      let name = String(path.split(separator: "/").last ?? "")
      return all[name].map { (path, $0) }
    }
  }

  @Test func `there are some`() {
    #expect(!Self.cars.isEmpty)
    #expect(Self.cars.count == Corpus.files(under: "mst-test-suite", suffix: ".car").count)
  }

  @Test(arguments: cars.map(\.path))
  func `walk without a fault and are built anew to the byte`(_ path: String) throws {
    let expected = try #require(Self.cars.first { $0.path == path }).expected
    let (roots, blocks) = try readCAR(try Corpus.bytes(path))
    let root = try #require(roots.first)
    #expect(root.description == expected.root)

    let walk = Walk(from: root, in: blocks)
    #expect(walk.problems == [])
    #expect(walk.problemCount == 0)
    #expect(walk.missing == [])
    #expect(walk.nodes.count == expected.mst_node_count)
    #expect(walk.leaves.count == expected.record_count)
    #expect(walk.rootLayer == expected.root_layer)
    #expect(digest(ofLines: walk.lines.sorted()) == expected.records_sha256)
    #expect(walk.lines == walk.lines.sorted())

    let (rebuilt, nodes) = walk.rebuilt()
    #expect(rebuilt == root)
    #expect(nodes.count == walk.nodes.count)
    for (cid, bytes) in nodes { #expect(blocks[cid] == bytes) }
  }
}
