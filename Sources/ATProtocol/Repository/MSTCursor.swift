package import IPLD

/// Goes through the records of a tree in the order of their keys, or against it, from any key on.
///
/// For a page of a long list: what lies before it is passed by, so that a page costs the nodes on
/// the way to it and those it lies in. It does not judge the tree, as ``MSTWalker`` does, but ends
/// at keys that are not in order.
///
/// 1. `path` holds the nodes from the root down to the one that is being read, and of each what
///    comes next: child 0, entry 0, child 1, entry 1 … are its places 0, 1, 2, 3 …
/// 2. Every key that is given out lies behind the one before it, in the direction of the walk.
/// 3. Of a node only the one child is entered before its first key that may hold such keys, so that
///    finding a record takes no more nodes than there are levels, whatever links they have.
package struct MSTCursor: Sendable {
  /// Which way it goes.
  package enum Direction: Sendable {
    /// From the least key to the greatest.
    case ascending
    /// From the greatest key to the least.
    case descending
  }

  /// Why a walk cannot go on.
  package enum Fault: Error, Equatable, Sendable {
    /// A node is not there.
    case missingNode(CID)
    /// A node is none.
    case malformedNode(CID)
    /// Keys are not in order, or a path is deeper than any key lies.
    case malformedTree
  }

  private struct Level {
    let keys: [[UInt8]]
    let values: [CID]
    let children: [CID?]
    var place: Int
  }

  private let direction: Direction
  /// Only keys behind this one are given out.
  private var bound: [UInt8]?
  private var root: CID?
  private var path: [Level] = []

  /// A walk through the tree with this root.
  ///
  /// - Parameters:
  ///   - root: the topmost node.
  ///   - direction: which way.
  ///   - bound: the key behind which it begins, itself left out, be it in the tree or not; nil for
  ///     the end of the tree.
  package init(root: CID, _ direction: Direction, after bound: [UInt8]? = nil) {
    (self.root, self.direction, self.bound) = (root, direction, bound)
  }

  /// The next record, its key and its CID; nil at the end.
  ///
  /// - Parameter block: the bytes of a node; nil if it is not there.
  /// - Throws: ``Fault``; what `block` throws. The next call goes on behind a node that is missing
  ///   or malformed.
  package mutating func next(_ block: (CID) throws -> [UInt8]?) throws -> (key: [UInt8], cid: CID)?
  {
    if let root {
      self.root = nil
      path.append(try level(root, block))
    }
    while let last = path.indices.last {
      let place = path[last].place
      guard place >= 0, place <= 2 * path[last].keys.count else {
        path.removeLast()
        continue
      }
      path[last].place += direction == .ascending ? 1 : -1
      if place % 2 == 1 {
        let key = path[last].keys[place / 2]
        guard isBehind(key) else { throw Fault.malformedTree }
        bound = key
        return (key, path[last].values[place / 2])
      }
      guard let child = path[last].children[place / 2] else { continue }
      guard path.count <= MSTLayer.maximum + 2 else { throw Fault.malformedTree }
      path.append(try level(child, block))
    }
    return nil
  }

  private func isBehind(_ key: [UInt8]) -> Bool {
    guard let bound else { return true }
    return direction == .ascending
      ? bound.lexicographicallyPrecedes(key) : key.lexicographicallyPrecedes(bound)
  }

  /// A node, to be read from where the bound would be.
  private func level(_ cid: CID, _ block: (CID) throws -> [UInt8]?) throws -> Level {
    guard let bytes = try block(cid) else { throw Fault.missingNode(cid) }
    let node: MSTNode
    do throws(MSTNode.Malformed) {
      node = try MSTNode(bytes.span)
    } catch {
      throw Fault.malformedNode(cid)
    }
    var keys: [[UInt8]] = []
    var key: [UInt8] = []
    for entry in node.entries {
      guard entry.prefixLength <= key.count,
        entry.prefixLength + entry.suffix.count <= RecordPath.maximumLength
      else { throw Fault.malformedNode(cid) }
      key.removeLast(key.count - entry.prefixLength)
      key.append(contentsOf: node.suffixes[entry.suffix])
      keys.append(key)
    }
    let place: Int
    switch direction {
    case .ascending: place = 2 * (keys.firstIndex(where: isBehind) ?? keys.count)
    case .descending: place = 2 * ((keys.lastIndex(where: isBehind) ?? -1) + 1)
    }
    return Level(
      keys: keys, values: node.entries.map(\.value),
      children: [node.left] + node.entries.map(\.right),
      place: place)
  }
}
