package import IPLD

/// A subtree without a flaw, as far as what may stand around it depends on it.
///
/// Whether a subtree keeps the rules does not depend on the tree it lies in: a node names what is
/// below it. So a subtree that many trees share is walked in the first of them, and passed over in
/// the others by ``MSTWalker/pass(_:)``.
package struct MSTSubtree: Equatable, Sendable {
  /// The layer of its topmost node.
  package let layer: Int
  /// The first key in it.
  package let firstKey: [UInt8]
  /// The last key in it.
  package let lastKey: [UInt8]

  /// A subtree of which this is known.
  package init(layer: Int, firstKey: [UInt8], lastKey: [UInt8]) {
    self.layer = layer
    self.firstKey = firstKey
    self.lastKey = lastKey
  }

  /// What is at the edges of a subtree that keeps the rules; nil if it has no keys.
  ///
  /// - Parameters:
  ///   - top: its topmost node.
  ///   - isRoot: whether that has to have keys of its own.
  ///   - load: answers the block of a node.
  /// - Throws: ``MSTNode/Malformed``; what `load` throws.
  package static func edges(
    of top: CID, isRoot: Bool = false, load: (CID) throws -> [UInt8]
  ) throws -> MSTSubtree? {
    let first = try edge(of: top, load) { $0.left }
    if isRoot, !first.hasOwnKeys { return nil }
    let last = try edge(of: top, load) { $0.rightmost }
    guard let layer = first.layer, let firstKey = first.node.firstKey,
      let lastKey = last.node.lastKey
    else { return nil }
    return MSTSubtree(layer: layer, firstKey: firstKey, lastKey: lastKey)
  }

  /// One end of a subtree.
  private struct Edge {
    /// The node at the end.
    var node: MSTNode
    /// Whether the topmost node has keys of its own.
    let hasOwnKeys: Bool
    /// The layer of the topmost node, if some node on the way has keys.
    var layer: Int?
    /// How far the end is below the topmost node.
    var depth = 0

    /// Goes on to a node below.
    mutating func descend(to below: MSTNode) {
      node = below
      depth += 1
      if layer == nil, let key = below.firstKey { layer = MSTLayer.layer(of: key.span) + depth }
    }
  }

  private static func edge(
    of top: CID, _ load: (CID) throws -> [UInt8], next: (MSTNode) -> CID?
  ) throws -> Edge {
    let bytes = try load(top)
    let node = try MSTNode(bytes.span)
    var edge = Edge(
      node: node, hasOwnKeys: !node.entries.isEmpty,
      layer: node.firstKey.map { MSTLayer.layer(of: $0.span) })
    // No path in a tree is longer than there are layers.
    while edge.depth <= MSTLayer.maximum + 1, let below = next(edge.node) {
      let bytes = try load(below)
      edge.descend(to: try MSTNode(bytes.span))
    }
    return edge
  }
}

extension MSTNode {
  /// The last subtree; nil if nothing follows the last key.
  fileprivate var rightmost: CID? {
    guard let last = entries.last else { return left }
    return last.right
  }

  /// The first key; nil in a node without keys.
  package var firstKey: [UInt8]? { entries.first.map { Array(suffixes[$0.suffix]) } }

  /// The last key; nil in a node without keys, or with a prefix that cannot be.
  package var lastKey: [UInt8]? {
    guard !entries.isEmpty else { return nil }
    var key: [UInt8] = []
    for entry in entries {
      guard entry.prefixLength <= key.count else { return nil }
      key.removeLast(key.count - entry.prefixLength)
      key.append(contentsOf: suffixes[entry.suffix])
    }
    return key
  }
}
