import ATProtocol
import IPLD
import TestSupport
import Testing

/// A node as it can be written again with something else in it.
struct ChangeableNode {
  var left: CID?
  var entries: [HandMadeTree.Entry]

  init(_ bytes: [UInt8]) throws {
    let node = try MSTNode(bytes.span)
    left = node.left
    entries = []
    var key: [UInt8] = []
    for entry in node.entries {
      key = Array(key.prefix(entry.prefixLength) + node.suffixes[entry.suffix])
      entries.append(
        HandMadeTree.Entry(key: key, value: entry.value, right: entry.right))
    }
  }

  /// The subtrees, from left to right.
  var subtrees: [CID] { ([left] + entries.map(\.right)).compactMap(\.self) }

  /// Exchanges a subtree for another, or for none.
  mutating func replace(_ old: CID, by new: CID?) {
    if left == old { left = new }
    for index in entries.indices where entries[index].right == old { entries[index].right = new }
  }

  /// Changes it, in one of the ways in which trees go wrong, or stay right.
  mutating func mutate(_ all: [CID], _ random: inout SeededGenerator) {
    let subtrees = subtrees
    switch Int.random(in: 0..<7, using: &random) {
    case 0:
      guard let victim = subtrees.randomElement(using: &random) else { return }
      replace(victim, by: nil)
    case 1:
      guard let victim = subtrees.randomElement(using: &random) else { return }
      replace(victim, by: all.randomElement(using: &random))
    case 2:
      guard subtrees.count > 1 else { return }
      let (first, second) = (subtrees[0], subtrees[subtrees.count - 1])
      replace(first, by: .example(999))
      replace(second, by: first)
      replace(.example(999), by: second)
    case 3: if entries.count > 1 { entries.removeLast() }
    case 4: if entries.count > 1 { entries.removeFirst() }
    case 5:
      guard let index = entries.indices.randomElement(using: &random) else { return }
      entries[index].key = Array(
        "t/\(Int.random(in: 10_000_000..<10_002_000, using: &random))".utf8)
    default:
      guard let index = entries.indices.randomElement(using: &random) else { return }
      entries[index].value = .example(Int.random(in: 5000..<6000, using: &random))
    }
  }
}

extension HandMadeTree {
  /// Writes a tree again with one of its nodes changed at random; returns the new root.
  ///
  /// - Parameters:
  ///   - root: its root.
  ///   - nodes: what links may be exchanged for.
  mutating func withOneNodeChanged(
    _ root: CID, _ nodes: [CID], _ random: inout SeededGenerator
  ) throws -> CID {
    // Down a random path, and up again with other nodes.
    var path = [root]
    while Bool.random(using: &random), let below = path.last,
      let next = try ChangeableNode(#require(blocks[below])).subtrees.randomElement(using: &random)
    {
      path.append(next)
    }
    var changed: CID?
    for (depth, cid) in path.enumerated().reversed() {
      var node = try ChangeableNode(#require(blocks[cid]))
      if let changed {
        node.replace(path[depth + 1], by: changed)
      } else {
        node.mutate(nodes, &random)
      }
      changed = add(left: node.left, entries: node.entries)
    }
    return try #require(changed)
  }
}
