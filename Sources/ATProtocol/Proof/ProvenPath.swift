package import IPLD

/// The way from the root of a tree to a key, or to where it would be, each node of it checked.
///
/// A node on the way has to be what it must be in the whole tree: its keys ascend between those
/// above it, belong to its layer and share all they can, and its layer is the next below. Then a
/// key that is not found is not there. Nothing recurses: a way has no more nodes than there are
/// layers.
package struct ProvenPath {
  /// What a node says about the key.
  package enum Step {
    /// It may be below this node.
    case node(CID)
    /// This is its record.
    case record(CID)
    /// The tree does not have it.
    case absent
  }

  private let key: [UInt8]
  /// The layer of the node before; nil at the root.
  private var layer: Int?
  /// The keys between which the next node's have to be.
  private var lower: [UInt8]?
  private var upper: [UInt8]?

  package init(_ key: [UInt8]) { self.key = key }

  /// Checks a node, given its block, and says where to go on.
  package mutating func step(_ bytes: Span<UInt8>, _ cid: CID) throws(RecordProofFault) -> Step {
    let node: MSTNode
    do {
      node = try MSTNode(bytes)
    } catch {
      throw .illegalNode(MSTProblem(kind: .malformedNode(error), node: cid, key: nil))
    }
    guard !node.entries.isEmpty else { return try stepWithoutKeys(node, cid) }

    var (before, after) = (lower, upper)
    var next = node.left
    var isPassed = false
    var found: CID?
    var current: [UInt8] = []
    var nodeLayer = layer.map { $0 - 1 }
    for (index, entry) in node.entries.enumerated() {
      let previous = current
      try read(entry, of: node, cid, &current)
      if let last = index == 0 ? lower : previous, !last.lexicographicallyPrecedes(current) {
        throw fault(.keysNotAscending, cid, current)
      }
      let own = MSTLayer.layer(of: current.span)
      guard own == nodeLayer ?? own else { throw fault(.wrongLayer, cid, current) }
      nodeLayer = own
      if current == key { found = entry.value }
      if key.lexicographicallyPrecedes(current) {
        if !isPassed { after = current }
        isPassed = true
      } else {
        (before, next) = (current, entry.right)
      }
    }
    if let upper, !current.lexicographicallyPrecedes(upper) {
      throw fault(.keysNotAscending, cid, current)
    }
    if let found { return .record(found) }
    (layer, lower, upper) = (nodeLayer, before, after)
    return next.map { .node($0) } ?? .absent
  }

  /// Only between the root and the lowest layer may a node have no keys, and then it has a subtree.
  private mutating func stepWithoutKeys(_ node: MSTNode, _ cid: CID) throws(RecordProofFault)
    -> Step
  {
    guard let above = layer else {
      guard node.left == nil else { throw fault(.untrimmedTop, cid) }
      return .absent
    }
    guard let left = node.left else { throw fault(.emptyLeaf, cid) }
    guard above > 1 else { throw fault(.wrongLayer, cid) }
    layer = above - 1
    return .node(left)
  }

  /// Turns the key before into this one.
  private func read(
    _ entry: MSTNode.Entry, of node: MSTNode, _ cid: CID, _ current: inout [UInt8]
  ) throws(RecordProofFault) {
    let rest = node.suffixes[entry.suffix]
    let shared = entry.prefixLength
    guard shared <= current.count, shared == current.count || rest.first != current[shared] else {
      throw fault(.prefixNotMaximal, cid)
    }
    current.removeLast(current.count - shared)
    current.append(contentsOf: rest)
    guard RecordPath.isTreeKey(current.span) else { throw fault(.illegalKey, cid, current) }
  }

  private func fault(_ kind: MSTProblem.Kind, _ cid: CID, _ key: [UInt8]? = nil)
    -> RecordProofFault
  {
    .illegalNode(MSTProblem(kind: kind, node: cid, key: key))
  }
}
