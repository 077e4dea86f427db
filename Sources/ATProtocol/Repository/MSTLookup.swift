package import IPLD

/// Looks for one record along the one path of the tree that can lead to it.
///
/// Like ``MSTWalker`` it does no I/O: it names the node it needs, and is given it.
package struct MSTLookup: Sendable {
  /// What a node says about the record.
  package enum Step: Equatable, Sendable {
    /// It may be below this node.
    case node(CID)
    /// This is it.
    case record(CID)
    /// The tree does not have it.
    case absent
  }

  private let key: [UInt8]
  private var depth = 0

  /// A search for the record with this key, `collection/rkey`.
  package init(_ key: some Sequence<UInt8>) { self.key = Array(key) }

  /// Where to go on after a node, given its block.
  ///
  /// - Throws: ``MSTNode/Malformed``; a path longer than there are layers counts as one.
  package mutating func step(_ node: Span<UInt8>) throws(MSTNode.Malformed) -> Step {
    depth += 1
    guard depth <= MSTLayer.maximum + 2 else { throw MSTNode.Malformed(reason: nil, offset: 0) }
    let node = try MSTNode(node)
    var before = node.left
    var current: [UInt8] = []
    for entry in node.entries {
      guard entry.prefixLength <= current.count else {
        throw MSTNode.Malformed(reason: nil, offset: 0)
      }
      current.removeLast(current.count - entry.prefixLength)
      current.append(contentsOf: node.suffixes[entry.suffix])
      if current == key { return .record(entry.value) }
      if key.lexicographicallyPrecedes(current) { break }
      before = entry.right
    }
    return before.map { .node($0) } ?? .absent
  }
}
