package import IPLD

/// One thing that is wrong with a tree, and where.
package struct MSTProblem: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// The rules a tree can break.
  package enum Kind: Equatable, Sendable {
    /// The block of a node is missing.
    case missing
    /// The block is not a tree node.
    case malformedNode(MSTNode.Malformed)
    /// A node lies below itself.
    case cycle
    /// A node occurs twice in the tree.
    case repeatedNode
    /// The shared length that a key states differs from what it shares with the key before it.
    case prefixNotMaximal
    /// A key does not sort after the one before it.
    case keysNotAscending
    /// A key that is not a record path.
    case illegalKey
    /// A key, or a node, does not belong to the layer where it is.
    case wrongLayer
    /// A node without keys and without a subtree, below the root.
    case emptyLeaf
    /// A root without keys above the tree proper.
    case untrimmedTop
    /// More nodes above one another than there are layers.
    case tooDeep
  }

  /// What is wrong.
  package let kind: Kind
  /// In which node.
  package let node: CID
  /// At which key, where one is at fault; of a key that is too long, its start.
  package let key: [UInt8]?

  /// A problem with its place.
  package init(kind: Kind, node: CID, key: [UInt8]?) {
    self.kind = kind
    self.node = node
    self.key = key
  }

  /// The tree is not what it must be.
  package var faultKind: FaultKind { .damage }

  /// The message for people.
  package var description: String {
    let what =
      switch kind {
      case .missing: "the block is missing"
      case .malformedNode(let error):
        "the block is not a tree node (byte \(error.offset)"
          + (error.reason.map { ", \($0)" } ?? "") + ")"
      case .cycle: "the node lies below itself"
      case .repeatedNode: "the node occurs twice in the tree"
      case .prefixNotMaximal: "the key's shared prefix has the wrong length"
      case .keysNotAscending: "the key does not sort after the one before it"
      case .illegalKey: "the key is not a legal record path"
      case .wrongLayer: "the key or node is in the wrong layer"
      case .emptyLeaf: "the node is empty"
      case .untrimmedTop: "the root has no keys of its own"
      case .tooDeep: "the tree is deeper than any valid tree"
      }
    let place = key.map { ", key \($0.shown)" } ?? ""
    return "\(what): node \(node)\(place)"
  }

  /// Whether it is about one node only: what lies after that can be read.
  package var isOfOneNode: Bool {
    switch kind {
    case .missing, .malformedNode, .prefixNotMaximal: true
    default: false
    }
  }
}
