import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A new tree that is verified by how it differs` {
  private typealias Entry = HandMadeTree.Entry

  /// A node as it can be written again with something else in it.
  private struct Node {
    var left: CID?
    var entries: [Entry]

    init(_ bytes: [UInt8]) throws {
      let node = try MSTNode(bytes.span)
      left = node.left
      entries = []
      var key: [UInt8] = []
      for entry in node.entries {
        key = Array(key.prefix(entry.prefixLength) + node.suffixes[entry.suffix])
        entries.append(Entry(key: key, value: entry.value, right: entry.right))
      }
    }

    /// The subtrees, from left to right.
    var subtrees: [CID] { ([left] + entries.map(\.right)).compactMap(\.self) }

    /// Exchanges a subtree for another, or for none.
    mutating func replace(_ old: CID, by new: CID?) {
      if left == old { left = new }
      for index in entries.indices where entries[index].right == old { entries[index].right = new }
    }
  }

  private func compare(_ old: CID, _ new: CID, in blocks: [CID: [UInt8]]) throws -> Bool {
    do {
      try MSTDiff.compare(old: old, new: new, verifying: true) { cid, _ in
        blocks[cid]
      } each: { _ in
      }
      return true
    } catch MSTDiffError.malformed {
      return false
    }
  }

  /// Changes one node, in one of the ways in which trees go wrong, or stay right.
  private func mutate(
    _ node: inout Node, _ all: [CID], _ random: inout SeededGenerator
  ) {
    let subtrees = node.subtrees
    switch Int.random(in: 0..<7, using: &random) {
    case 0:
      guard let victim = subtrees.randomElement(using: &random) else { return }
      node.replace(victim, by: nil)
    case 1:
      guard let victim = subtrees.randomElement(using: &random) else { return }
      node.replace(victim, by: all.randomElement(using: &random))
    case 2:
      guard subtrees.count > 1 else { return }
      let (first, second) = (subtrees[0], subtrees[subtrees.count - 1])
      node.replace(first, by: .example(999))
      node.replace(second, by: first)
      node.replace(.example(999), by: second)
    case 3: if node.entries.count > 1 { node.entries.removeLast() }
    case 4: if node.entries.count > 1 { node.entries.removeFirst() }
    case 5:
      guard let index = node.entries.indices.randomElement(using: &random) else { return }
      node.entries[index].key = Array(
        "t/\(Int.random(in: 10_000_000..<10_002_000, using: &random))".utf8)
    default:
      guard let index = node.entries.indices.randomElement(using: &random) else { return }
      node.entries[index].value = .example(Int.random(in: 5000..<6000, using: &random))
    }
  }

  @Test func `is refused if and only if a walk through all of it finds something wrong`() throws {
    var random = SeededGenerator()
    print("trees that are verified by their differences: \(random)")
    var (soundCount, wrongCount) = (0, 0)
    for _ in 0..<3000 {
      let numbers = Set(
        (0..<Int.random(in: 1...300, using: &random)).map { _ in
          Int.random(in: 10_000_000..<10_002_000, using: &random)
        })
      var tree = HandMadeTree()
      var builder = MSTBuilder()
      var nodes: [CID] = []
      for number in numbers.sorted() {
        builder.append(key: Array("t/\(number)".utf8), value: .example(number)) { block in
          nodes.append(tree.add(block.bytes))
        }
      }
      let old = builder.finish { nodes.append(tree.add($0.bytes)) }
      // Down a random path, and up again with other nodes.
      var path = [old]
      while Bool.random(using: &random), let below = path.last,
        let next = try Node(#require(tree.blocks[below])).subtrees.randomElement(using: &random)
      {
        path.append(next)
      }
      var changed: CID?
      for (depth, cid) in path.enumerated().reversed() {
        var node = try Node(#require(tree.blocks[cid]))
        if let changed {
          node.replace(path[depth + 1], by: changed)
        } else {
          mutate(&node, nodes, &random)
        }
        changed = tree.add(left: node.left, entries: node.entries)
      }
      let new = try #require(changed)
      let isSound = tree.walk(from: new).problemCount == 0
      let isTaken = try compare(old, new, in: tree.blocks)
      #expect(
        isTaken == isSound, "\(tree.walk(from: new).problems.first.map { "\($0)" } ?? "sound")")
      if isSound { soundCount += 1 } else { wrongCount += 1 }
    }
    #expect(soundCount > 300)
    #expect(wrongCount > 300)
  }

  @Test func `is a part of the old one only if that has keys of its own`() throws {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("c")))
    let between = tree.add(left: leaf)
    let old = tree.add(left: between, Entry(key: key("f", layer: 2)))
    #expect(tree.walk(from: old).problemCount == 0)
    #expect(try compare(old, leaf, in: tree.blocks))
    #expect(try !compare(old, between, in: tree.blocks))
    #expect(try compare(old, old, in: tree.blocks))
  }
}
