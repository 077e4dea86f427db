package import IPLD

/// Goes down a tree to one key, and from there through its records in either direction.
///
/// Finds a record, proves that it is there or is not, and reads a page of a long list: of what lies
/// before, no more nodes are asked for than there are levels. ``MSTWalker`` reads whole trees.
///
/// Like that one it does no I/O: it names the node it needs, and is given it.
///
/// 1. `path` holds the nodes from the root down to the current one, and the place in each that
///    comes next: child 0, entry 0, child 1, entry 1 … are its places 0, 1, 2, 3 …
/// 2. Every key that is given out lies after the one before it, in the direction of the descent.
/// 3. Of each node, only the one child is entered before its first key that may hold such keys. So
///    a record is found in as many steps as there are levels, whatever links the nodes have.
package struct MSTDescent: Sendable {
  /// Which way it goes.
  package enum Direction: Sendable {
    /// From the least key to the greatest.
    case ascending
    /// From the greatest key to the least.
    case descending
  }

  private struct Level {
    let cid: CID
    let node: MSTNode
    let keys: [[UInt8]]
    /// The layer of its keys, if nodes are judged; nil in a root without keys.
    let layer: Int?
    var place: Int
  }

  /// The key of the record that was given out last.
  package private(set) var key: [UInt8] = []

  private let direction: Direction
  private let isJudging: Bool
  /// Only keys after this one are given out.
  private var bound: [UInt8]?
  /// Whether the bound itself is given out.
  private var isBoundIncluded: Bool
  private var requested: CID?
  private var path: [Level] = []

  /// A descent through the tree with this root.
  ///
  /// - Parameters:
  ///   - root: the topmost node.
  ///   - direction: which way.
  ///   - bound: the key after which it begins, itself left out, be it in the tree or not; nil for
  ///     the end of the tree.
  package init(root: CID, _ direction: Direction, after bound: [UInt8]? = nil) {
    (requested, self.direction, self.bound) = (root, direction, bound)
    (isBoundIncluded, isJudging) = (false, false)
  }

  /// An ascending descent to a key, or to the next one if the tree does not have it.
  ///
  /// - Parameters:
  ///   - root: the topmost node.
  ///   - key: the key.
  ///   - isJudging: whether every node on the way has to be what it must be in the whole tree: its
  ///     keys ascend between those above it, belong to its layer and share all they can, and its
  ///     layer is the next below. Then a key that is not found is not there.
  package init(root: CID, from key: [UInt8], isJudging: Bool = false) {
    (requested, direction, bound) = (root, .ascending, key)
    (isBoundIncluded, self.isJudging) = (true, isJudging)
  }

  /// The next step, or nil at the end.
  ///
  /// - Precondition: a node that was requested has been entered or skipped.
  /// - Throws: ``MSTProblem`` where keys are not in order, or a path is deeper than any key lies.
  package mutating func next() throws(MSTProblem) -> MSTWalker.Step? {
    while requested == nil, let last = path.indices.last {
      let (place, keys) = (path[last].place, path[last].keys)
      guard place >= 0, place <= 2 * keys.count else {
        path.removeLast()
        continue
      }
      path[last].place += direction == .ascending ? 1 : -1
      guard place % 2 == 1 else {
        requested = path[last].node.child(place / 2)
        continue
      }
      // A longer key is illegal: its record is passed over.
      guard keys[place / 2].count <= RecordPath.maximumLength else { continue }
      key = keys[place / 2]
      guard isBehind(key) else {
        throw MSTProblem(kind: .keysNotAscending, node: path[last].cid, key: key)
      }
      (bound, isBoundIncluded) = (key, false)
      return .record(path[last].node.entries[place / 2].value)
    }
    guard let requested else { return nil }
    guard path.count <= MSTLayer.maximum + 2 else {
      throw MSTProblem(kind: .tooDeep, node: requested, key: nil)
    }
    return .node(requested)
  }

  /// Goes on without the node that was requested.
  package mutating func skip() { requested = nil }

  /// Takes the block of the node that was requested.
  ///
  /// - Throws: ``MSTProblem``; the descent continues after the node.
  package mutating func enter(_ bytes: Span<UInt8>) throws(MSTProblem) {
    guard let cid = requested else { return }
    requested = nil
    let node: MSTNode
    do throws(MSTNode.Malformed) {
      node = try MSTNode(bytes)
    } catch {
      throw MSTProblem(kind: .malformedNode(error), node: cid, key: nil)
    }
    guard let keys = node.keys else {
      throw MSTProblem(kind: .prefixNotMaximal, node: cid, key: nil)
    }
    let layer = isJudging ? try judge(node, cid, keys) : nil
    let place =
      switch direction {
      case .ascending:
        if let index = keys.firstIndex(where: isBehind) {
          keys[index] == bound ? 2 * index + 1 : 2 * index
        } else {
          2 * keys.count
        }
      case .descending: 2 * ((keys.lastIndex(where: isBehind) ?? -1) + 1)
      }
    path.append(Level(cid: cid, node: node, keys: keys, layer: layer, place: place))
  }

  private func isBehind(_ key: [UInt8]) -> Bool {
    guard let bound else { return true }
    if isBoundIncluded, key == bound { return true }
    return direction == .ascending
      ? bound.lexicographicallyPrecedes(key) : key.lexicographicallyPrecedes(bound)
  }

  /// Checks a node by all rules that it and the path to it show; returns its layer.
  private func judge(_ node: MSTNode, _ cid: CID, _ keys: [[UInt8]]) throws(MSTProblem) -> Int? {
    func check(_ holds: Bool, _ kind: MSTProblem.Kind, _ key: [UInt8]? = nil) throws(MSTProblem) {
      guard holds else { throw MSTProblem(kind: kind, node: cid, key: key) }
    }
    let above = path.last?.layer
    guard !keys.isEmpty else {
      // Only between the root and the lowest layer may a node have no keys; it has a subtree then.
      guard let above else {
        try check(node.left == nil, .untrimmedTop)
        return nil
      }
      try check(node.left != nil, .emptyLeaf)
      try check(above > 1, .wrongLayer)
      return above - 1
    }
    var layer = above.map { $0 - 1 }
    var before: [UInt8] = []
    let (lower, upper) = edges
    for (entry, key) in zip(node.entries, keys) {
      let shared = entry.prefixLength
      try check(
        shared >= min(before.count, key.count) || before[shared] != key[shared], .prefixNotMaximal)
      try check(RecordPath.isValid(key.span), .illegalKey, key)
      let last = before.isEmpty ? lower : before
      try check(last?.lexicographicallyPrecedes(key) ?? true, .keysNotAscending, key)
      let own = MSTLayer.layer(of: key.span)
      try check(own == layer ?? own, .wrongLayer, key)
      (layer, before) = (own, key)
    }
    try check(upper.map(before.lexicographicallyPrecedes) ?? true, .keysNotAscending, before)
    return layer
  }

  /// The keys of the path between which those of the next node have to be.
  private var edges: (lower: [UInt8]?, upper: [UInt8]?) {
    var edges: (lower: [UInt8]?, upper: [UInt8]?)
    for level in path {
      // The place after that of the child that was requested.
      let index = level.place / 2
      if index > 0 { edges.lower = level.keys[index - 1] }
      if index < level.keys.count { edges.upper = level.keys[index] }
    }
    return edges
  }

  // MARK: With a source of blocks

  /// The next record, its key and its CID; nil at the end.
  ///
  /// - Parameter block: the bytes of a node; nil if it is missing.
  /// - Throws: ``MSTProblem``; what `block` throws. The next call continues after a node that is
  ///   missing or malformed.
  package mutating func next(
    _ block: (CID) throws -> [UInt8]?
  ) throws -> (key: [UInt8], cid: CID)? {
    while let step = try next() {
      switch step {
      case .record(let record): return (key, record)
      case .node(let node):
        defer { skip() }
        guard let bytes = try block(node) else {
          throw MSTProblem(kind: .missing, node: node, key: nil)
        }
        try enter(bytes.span)
      }
    }
    return nil
  }

  /// The record with this key; nil if the tree does not have it.
  ///
  /// - Throws: ``MSTProblem``; what `block` throws.
  package static func find(
    _ key: some Sequence<UInt8>, below root: CID, _ block: (CID) throws -> [UInt8]?
  ) throws -> CID? {
    let key = Array(key)
    var descent = MSTDescent(root: root, from: key)
    guard let found = try descent.next(block), found.key == key else { return nil }
    return found.cid
  }
}

extension MSTSubtree {
  /// What is at the edges of a subtree that keeps the rules; nil if it has no keys.
  ///
  /// - Parameters:
  ///   - top: its topmost node.
  ///   - isRoot: whether that has to have keys of its own.
  ///   - block: the bytes of a node; nil if it is missing.
  /// - Throws: ``MSTProblem``; what `block` throws.
  static func edges(
    of top: CID, isRoot: Bool, _ block: (CID) throws -> [UInt8]?
  ) throws -> MSTSubtree? {
    var (first, last) = (MSTDescent(root: top, .ascending), MSTDescent(root: top, .descending))
    guard let firstKey = try first.next(block)?.key, let lastKey = try last.next(block)?.key,
      let layer = first.topLayer(isRoot: isRoot)
    else { return nil }
    return MSTSubtree(layer: layer, firstKey: firstKey, lastKey: lastKey)
  }
}

extension MSTDescent {
  /// The layer of the topmost node, by the keys of the first node on the path that has some.
  fileprivate func topLayer(isRoot: Bool) -> Int? {
    guard let depth = path.firstIndex(where: { !$0.keys.isEmpty }), depth == 0 || !isRoot else {
      return nil
    }
    let key = path[depth].keys[0]
    return MSTLayer.layer(of: key.span) + depth
  }
}
