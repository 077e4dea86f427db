package import IPLD

/// Compares two trees: which nodes and records only one of them has, and which records changed.
///
/// ```swift
/// try MSTDiff.compare(old: before.data, new: after.data) { cid, side in
///   try blocks(of: side)[cid]
/// } each: { change in
///   if case .record(let record) = change { print(record.path) }
/// }
/// ```
///
/// Both trees are walked at once in the order of their keys, and a subtree that both come to is
/// passed over in both. So what is loaded follows what changed, and not the trees: with k of n
/// records changed, O(k · log n) nodes. Nodes that both trees have are not among them, except a few
/// along the left edge of a subtree in front of which the other tree has keys of its own: that they
/// are its own shows only there.
///
/// Invariants:
/// 1. Every record with a key below those at the fronts of the two walks has been accounted for.
/// 2. A node counts as `untouched` until something of it is accounted for. So a subtree that one
///    side had to look into before the other came to it is still recognised as a whole, however
///    differently the nodes above it are cut, and whatever layers they are in.
/// 3. Of each tree one path is in memory, and nothing else.
/// 4. If the new tree is verified, and the old one keeps the rules, then at the end the new one
///    does, too: its own nodes have been walked, and every subtree that was passed over fits where
///    it stands.
package struct MSTDiff {
  /// Which of the two trees.
  package enum Side: Sendable {
    /// The one to compare with.
    case old
    /// The other.
    case new
  }

  /// One difference.
  package enum Change: Equatable, Sendable {
    /// The old tree has this node, and the new one does not.
    case deletedNode(CID)
    /// The new tree has this node, and the old one does not.
    case createdNode(CID)
    /// A record that is not the same in both.
    case record(RecordChange)
  }

  /// A record that is not the same in both trees.
  package struct RecordChange: Equatable, Sendable {
    /// Its key, `collection/rkey`.
    package let key: [UInt8]
    /// The record in the old tree; nil if it was created.
    package let old: CID?
    /// The record in the new tree; nil if it was deleted.
    package let new: CID?

    /// A change of the record with this key.
    package init(key: [UInt8], old: CID?, new: CID?) {
      self.key = key
      self.old = old
      self.new = new
    }

    /// The key as text.
    package var path: String { String(decoding: key, as: UTF8.self) }
  }

  private var old: DiffSide
  private var new: DiffSide
  private let isVerifying: Bool

  /// Compares the trees with these roots.
  ///
  /// - Parameters:
  ///   - old: the root of the old tree.
  ///   - new: the root of the new tree.
  ///   - verifying: whether all of the new tree has to keep the rules, given that the old one does.
  ///   - load: returns the block of a node of one of the trees; nil if it is missing.
  ///   - each: receives the differences; records in the order of their keys, each after the nodes
  ///     that it lies in.
  /// - Throws: ``MSTDiffError`` for a node that is missing, or a tree that breaks a rule where it
  ///   is read; what the closures throw.
  package static func compare(
    old: CID, new: CID, verifying: Bool = false, load: (CID, Side) throws -> [UInt8]?,
    each: (Change) throws -> Void
  ) throws {
    var diff = MSTDiff(
      old: DiffSide(.old, root: old), new: DiffSide(.new, root: new), isVerifying: verifying)
    while try diff.advance(load, each) {}
  }

  private init(old: DiffSide, new: DiffSide, isVerifying: Bool) {
    self.old = old
    self.new = new
    self.isVerifying = isVerifying
  }

  /// Does away with what is at the front of one side, or of both; false at the end.
  private mutating func advance(
    _ load: (CID, Side) throws -> [UInt8]?, _ each: (Change) throws -> Void
  ) throws -> Bool {
    if try passOver(load, each) { return true }
    switch (old.front, new.front) {
    case (.node(let oldNode), .node(let newNode)):
      // A subtree can only be found again within one that reaches higher, so that is the one to
      // open.
      if (old.walker.requestedLayer ?? .max) >= (new.walker.requestedLayer ?? .max) {
        try old.open(oldNode, load)
      } else {
        try new.open(newNode, load)
      }
    case (.node(let node), _): try old.open(node, load)
    case (_, .node(let node)): try new.open(node, load)
    case (.record(let before), .record(let after)):
      let isSame = old.walker.key == new.walker.key
      let isDeleted = !isSame && old.walker.key.lexicographicallyPrecedes(new.walker.key)
      try take(isSame || isDeleted ? before : nil, isDeleted ? nil : after, each)
    case (.record(let before), nil): try take(before, nil, each)
    case (nil, .record(let after)): try take(nil, after, each)
    case (nil, nil):
      // The root of an empty tree has nothing that could be accounted for.
      try old.touch(each)
      try new.touch(each)
      return false
    }
    return true
  }

  /// Continues after the record at the front of one side, or of both.
  private mutating func take(
    _ before: CID?, _ after: CID?, _ each: (Change) throws -> Void
  ) throws {
    // A key that is held longer than it has to be takes memory of its own.
    let change =
      before == after
      ? nil
      : RecordChange(
        key: before == nil ? new.walker.key : old.walker.key, old: before, new: after)
    if before != nil { try old.take(each) }
    if after != nil { try new.take(each) }
    if let change { try each(.record(change)) }
  }

  /// Passes over the subtree that both sides have come to, if they have come to the same.
  private mutating func passOver(
    _ load: (CID, Side) throws -> [UInt8]?, _ each: (Change) throws -> Void
  ) throws -> Bool {
    guard let passed = try passOver(each) else { return false }
    // Subtrees that are passed over have no last record, so these are still those in front of it.
    let (behindOld, behindNew) = (old.lastKey, new.lastKey)
    // Two trees with the same root need no block.
    guard isVerifying, passed.oldLayer != nil || passed.newLayer != nil else { return true }
    // In the old tree it fits: between the keys around it there, and in its layer.
    func isWithin(_ outer: [UInt8]?, _ inner: [UInt8]?, _ precedes: ([UInt8], [UInt8]) -> Bool)
      -> Bool
    {
      guard let inner else { return true }
      return outer.map { !precedes($0, inner) } ?? false
    }
    let fitsAsBefore =
      passed.oldLayer == passed.newLayer
      && isWithin(behindOld, behindNew) { $0.lexicographicallyPrecedes($1) }
      && isWithin(old.nextKey, new.nextKey) { $1.lexicographicallyPrecedes($0) }
    if !fitsAsBefore { try check(passed.node, layer: passed.newLayer, behind: behindNew, load) }
    return true
  }

  /// Passes over a subtree that both trees have, and returns it, and the layers it has to be in,
  /// nil for a root.
  private mutating func passOver(_ each: (Change) throws -> Void) throws -> (
    node: CID, oldLayer: Int?, newLayer: Int?
  )? {
    let (oldLayer, newLayer) = (old.walker.requestedLayer, new.walker.requestedLayer)
    if case .node(let node) = old.front {
      if new.front == .node(node) {
        try old.skip(each)
        try new.skip(each)
        return (node, oldLayer, newLayer)
      }
      if let layer = try new.leave(node, each) {
        try old.skip(each)
        return (node, oldLayer, layer)
      }
    }
    if case .node(let node) = new.front, let layer = try old.leave(node, each) {
      try new.skip(each)
      return (node, layer, newLayer)
    }
    return nil
  }

  /// Makes sure that a subtree that was passed over fits between the keys around it.
  ///
  /// - Parameters:
  ///   - node: its topmost node.
  ///   - layer: the layer that it has to be in; nil for a root.
  ///   - key: the key in front of it; nil if there is none.
  private func check(
    _ node: CID, layer: Int?, behind key: [UInt8]?, _ load: (CID, Side) throws -> [UInt8]?
  ) throws {
    func check(_ holds: Bool, _ kind: MSTProblem.Kind) throws {
      guard holds else { throw MSTDiffError(MSTProblem(kind: kind, node: node, key: nil), .new) }
    }
    let subtree: MSTSubtree?
    do {
      subtree = try MSTSubtree.edges(of: node, isRoot: layer == nil) { try load($0, .new) }
    } catch let problem as MSTProblem {
      throw MSTDiffError(MSTProblem(kind: problem.kind, node: problem.node, key: key), .new)
    }
    guard let subtree else { return try check(false, layer == nil ? .untrimmedTop : .emptyLeaf) }
    try check(layer.map { $0 == subtree.layer } ?? true, .wrongLayer)
    try check(key?.lexicographicallyPrecedes(subtree.firstKey) ?? true, .keysNotAscending)
    let next = new.nextKey
    try check(next.map(subtree.lastKey.lexicographicallyPrecedes) ?? true, .keysNotAscending)
  }
}

/// One of the two walks.
private struct DiffSide {
  let side: MSTDiff.Side
  var walker: MSTWalker
  /// What comes next; nil at the end.
  private(set) var front: MSTWalker.Step?
  /// The lowest nodes on the path, those of which nothing has been accounted for, and the layers
  /// they have to be in.
  private var untouched: [(node: CID, layer: Int?)] = []
  /// The key of the record that was accounted for last; nil if none was.
  var lastKey: [UInt8]? { hasLastKey ? keptKey : nil }
  private var keptKey: [UInt8] = []
  private var hasLastKey = false

  /// The key of the record at the front; nil if there is none.
  var nextKey: [UInt8]? { if case .record = front { walker.key } else { nil } }

  init(_ side: MSTDiff.Side, root: CID) {
    self.side = side
    walker = MSTWalker(root: root)
    front = walker.next()
  }

  /// Enters the node at the front.
  mutating func open(_ node: CID, _ load: (CID, MSTDiff.Side) throws -> [UInt8]?) throws {
    guard let bytes = try load(node, side) else {
      let key = walker.key.isEmpty ? nil : walker.key
      throw MSTDiffError(MSTProblem(kind: .missing, node: node, key: key), side)
    }
    untouched.append((node, walker.requestedLayer))
    walker.enter(bytes.span)
    try proceed()
  }

  /// Continues after the record at the front.
  mutating func take(_ each: (MSTDiff.Change) throws -> Void) throws {
    keptKey.removeAll(keepingCapacity: true)
    keptKey.append(contentsOf: walker.key)
    hasLastKey = true
    try goOn(each)
  }

  private mutating func goOn(_ each: (MSTDiff.Change) throws -> Void) throws {
    try touch(each)
    try proceed()
  }

  /// Continues after the subtree at the front, without loading it.
  mutating func skip(_ each: (MSTDiff.Change) throws -> Void) throws {
    walker.skip()
    try goOn(each)
  }

  /// Continues after a subtree that has been looked into, as if it had not.
  ///
  /// - Returns: the layer it has to be in, itself nil for a root; nil if it has not been looked
  ///   into.
  mutating func leave(_ node: CID, _ each: (MSTDiff.Change) throws -> Void) throws -> Int?? {
    guard let index = untouched.firstIndex(where: { $0.node == node }) else { return nil }
    let layer = untouched[index].layer
    walker.leave(untouched.count - index)
    untouched.removeSubrange(index...)
    try goOn(each)
    return .some(layer)
  }

  /// Gives out the nodes that are not the other tree's, as something of them is accounted for.
  mutating func touch(_ each: (MSTDiff.Change) throws -> Void) throws {
    for (node, _) in untouched { try each(side == .old ? .deletedNode(node) : .createdNode(node)) }
    untouched.removeAll(keepingCapacity: true)
  }

  private mutating func proceed() throws {
    front = walker.next()
    if let problem = walker.problems.first { throw MSTDiffError(problem, side) }
  }
}
