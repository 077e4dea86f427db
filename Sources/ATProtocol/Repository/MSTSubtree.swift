/// A subtree without a flaw, as far as what may stand around it depends on it.
///
/// Whether a subtree keeps the rules does not depend on the tree it lies in: a node names what is below it. So a subtree that many trees
/// share is walked in the first of them, and passed over in the others by ``MSTWalker/pass(_:)``.
public struct MSTSubtree: Equatable, Sendable {
  /// The layer of its topmost node.
  public let layer: Int
  /// The first key in it.
  public let firstKey: [UInt8]
  /// The last key in it.
  public let lastKey: [UInt8]

  /// A subtree of which this is known.
  public init(layer: Int, firstKey: [UInt8], lastKey: [UInt8]) {
    self.layer = layer
    self.firstKey = firstKey
    self.lastKey = lastKey
  }
}

extension MSTNode {
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
