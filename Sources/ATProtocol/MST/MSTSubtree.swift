/// What a tree around a valid subtree has to know of it.
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
}
