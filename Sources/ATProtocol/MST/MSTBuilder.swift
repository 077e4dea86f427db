package import IPLD

/// Builds a Merkle Search Tree from its records in order, and so says which root they must have.
///
/// The tree is determined by its keys and values alone. Records arrive in ascending order of their
/// keys, nodes leave as soon as they are complete, children before parents, and only the nodes on
/// the right edge are held.
///
/// Invariants:
/// 1. `edge[n]` is the unfinished node of layer n; nothing in it sorts after what came last.
/// 2. When a key of layer n arrives, the nodes below n are finished and become the subtree before
///    it.
package struct MSTBuilder: Sendable {
  private struct Unfinished {
    var left: CID?
    var entries: [(key: [UInt8], value: CID, right: CID?)] = []
    var isEmpty: Bool { left == nil && entries.isEmpty }
  }

  private var edge: [Unfinished] = []
  private var last: [UInt8]?

  /// A tree without records.
  package init() {}

  /// Adds the record that comes next.
  ///
  /// - Parameters:
  ///   - key: the record's path.
  ///   - value: the record.
  ///   - emit: receives each node that this completes.
  /// - Precondition: `key` sorts after every key before it.
  package mutating func append(
    key: [UInt8], value: CID, emit: (Block) throws -> Void
  ) rethrows {
    if let last { precondition(last.lexicographicallyPrecedes(key), "keys must ascend") }
    last = key
    let layer = MSTLayer.layer(of: key.span)
    while edge.count <= layer { edge.append(Unfinished()) }
    try finish(below: layer, emit: emit)
    edge[layer].entries.append((key, value, nil))
  }

  /// Adds the record that comes next, for a caller who asks for the root alone.
  ///
  /// - Precondition: `key` sorts after every key before it.
  package mutating func append(key: [UInt8], value: CID) { append(key: key, value: value) { _ in } }

  /// Completes the tree; returns its root.
  package consuming func finish() -> CID { finish { _ in } }

  /// Completes the tree; returns its root.
  ///
  /// - Parameter emit: receives the nodes that were not complete before, the root last.
  package consuming func finish(emit: (Block) throws -> Void) rethrows -> CID {
    let top = edge.lastIndex { !$0.entries.isEmpty } ?? 0
    if edge.isEmpty { edge.append(Unfinished()) }
    try finish(below: top, emit: emit)
    let root = Self.block(edge[top])
    try emit(root)
    return root.cid
  }

  private mutating func finish(below layer: Int, emit: (Block) throws -> Void) rethrows {
    for index in 0..<layer where !edge[index].isEmpty {
      let node = Self.block(edge[index])
      try emit(node)
      edge[index] = Unfinished()
      if edge[index + 1].entries.isEmpty {
        edge[index + 1].left = node.cid
      } else {
        edge[index + 1].entries[edge[index + 1].entries.count - 1].right = node.cid
      }
    }
  }

  private static func block(_ node: Unfinished) -> Block {
    var bytes: [UInt8] = []
    DAGCBOREncoder.appendMapHead(2, to: &bytes)
    DAGCBOREncoder.appendString("e", to: &bytes)
    DAGCBOREncoder.appendArrayHead(node.entries.count, to: &bytes)
    var previous: [UInt8] = []
    for entry in node.entries {
      let shared = zip(previous, entry.key).prefix { $0 == $1 }.count
      DAGCBOREncoder.appendMapHead(4, to: &bytes)
      DAGCBOREncoder.appendString("k", to: &bytes)
      DAGCBOREncoder.appendBytes(entry.key[shared...], to: &bytes)
      DAGCBOREncoder.appendString("p", to: &bytes)
      DAGCBOREncoder.appendUnsigned(UInt64(shared), to: &bytes)
      DAGCBOREncoder.appendString("t", to: &bytes)
      append(entry.right, to: &bytes)
      DAGCBOREncoder.appendString("v", to: &bytes)
      DAGCBOREncoder.appendLink(entry.value, to: &bytes)
      previous = entry.key
    }
    DAGCBOREncoder.appendString("l", to: &bytes)
    append(node.left, to: &bytes)
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  private static func append(_ link: CID?, to bytes: inout [UInt8]) {
    guard let link else { return DAGCBOREncoder.appendNull(to: &bytes) }
    DAGCBOREncoder.appendLink(link, to: &bytes)
  }
}
