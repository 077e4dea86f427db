public import IPLD

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
/// Both trees are walked at once in the order of their keys, and a subtree that both come to is passed over in both. So what is loaded
/// follows what changed, and not the trees: with k of n records changed, O(k · log n) nodes. Nodes that both trees have are not among them, except
/// a few along the left edge of a subtree in front of which the other tree has keys of its own: that they are its own shows only there.
///
/// Invariants:
/// 1. Every record with a key below those at the fronts of the two walks has been accounted for.
/// 2. A node counts as `untouched` until something of it is accounted for. So a subtree that one side had to look into before the other came
///    to it is still recognised as a whole, however differently the nodes above it are cut, and whatever layers they are in.
/// 3. Of each tree one path is in memory, and nothing else.
public struct MSTDiff {
  /// Which of the two trees.
  public enum Side: Sendable {
    /// The one to compare with.
    case old
    /// The other.
    case new
  }

  /// One difference.
  public enum Change: Equatable, Sendable {
    /// The old tree has this node, and the new one does not.
    case deletedNode(CID)
    /// The new tree has this node, and the old one does not.
    case createdNode(CID)
    /// A record that is not the same in both.
    case record(RecordChange)
  }

  /// A record that is not the same in both trees.
  public struct RecordChange: Equatable, Sendable {
    /// Its key, `collection/rkey`.
    public let key: [UInt8]
    /// The record in the old tree; nil if it was created.
    public let old: CID?
    /// The record in the new tree; nil if it was deleted.
    public let new: CID?

    /// A change of the record with this key.
    public init(key: [UInt8], old: CID?, new: CID?) {
      self.key = key
      self.old = old
      self.new = new
    }

    /// The key as text.
    public var path: String { String(decoding: key, as: UTF8.self) }
  }

  private var old: Cursor
  private var new: Cursor

  /// Compares the trees with these roots.
  ///
  /// - Parameters:
  ///   - old: the root of the old tree.
  ///   - new: the root of the new tree.
  ///   - load: answers the block of a node of one of the trees; nil if it is not there.
  ///   - each: receives the differences; records in the order of their keys, each after the nodes that it lies in.
  /// - Throws: ``MSTDiffError`` for a node that is missing, or a tree that breaks a rule where it is read; what the closures throw.
  public static func compare(
    old: CID, new: CID, load: (CID, Side) throws -> [UInt8]?, each: (Change) throws -> Void
  ) throws {
    var diff = MSTDiff(old: Cursor(.old, root: old), new: Cursor(.new, root: new))
    while try diff.advance(load, each) {}
  }

  private init(old: Cursor, new: Cursor) {
    self.old = old
    self.new = new
  }

  /// Does away with what is at the front of one side, or of both; false at the end.
  private mutating func advance(
    _ load: (CID, Side) throws -> [UInt8]?, _ each: (Change) throws -> Void
  ) throws -> Bool {
    if try passOver(each) { return true }
    switch (old.front, new.front) {
    case (.node(let oldNode), .node(let newNode)):
      // A subtree can only be found again within one that reaches higher, so that is the one to open.
      if (old.walker.requestedLayer ?? .max) >= (new.walker.requestedLayer ?? .max) {
        try old.open(oldNode, load)
      } else {
        try new.open(newNode, load)
      }
    case (.node(let node), _): try old.open(node, load)
    case (_, .node(let node)): try new.open(node, load)
    case (.record(let before), .record(let after)):
      if old.walker.key == new.walker.key {
        let key = old.walker.key
        try old.take(each)
        try new.take(each)
        if before != after { try each(.record(RecordChange(key: key, old: before, new: after))) }
      } else if old.walker.key.lexicographicallyPrecedes(new.walker.key) {
        try take(deleted: before, each)
      } else {
        try take(created: after, each)
      }
    case (.record(let before), nil): try take(deleted: before, each)
    case (nil, .record(let after)): try take(created: after, each)
    case (nil, nil):
      // The root of an empty tree has nothing that could be accounted for.
      try old.touch(each)
      try new.touch(each)
      return false
    }
    return true
  }

  /// Passes over the subtree that both sides have come to, if they have come to the same.
  private mutating func passOver(_ each: (Change) throws -> Void) throws -> Bool {
    if case .node(let node) = old.front {
      if new.front == .node(node) {
        try old.skip(each)
        try new.skip(each)
        return true
      }
      if try new.leave(node, each) {
        try old.skip(each)
        return true
      }
    }
    if case .node(let node) = new.front, try old.leave(node, each) {
      try new.skip(each)
      return true
    }
    return false
  }

  private mutating func take(deleted record: CID, _ each: (Change) throws -> Void) throws {
    let key = old.walker.key
    try old.take(each)
    try each(.record(RecordChange(key: key, old: record, new: nil)))
  }

  private mutating func take(created record: CID, _ each: (Change) throws -> Void) throws {
    let key = new.walker.key
    try new.take(each)
    try each(.record(RecordChange(key: key, old: nil, new: record)))
  }
}

/// One of the two walks.
private struct Cursor {
  let side: MSTDiff.Side
  var walker: MSTWalker
  /// What comes next; nil at the end.
  private(set) var front: MSTWalker.Step?
  /// The lowest nodes on the path, those of which nothing has been accounted for.
  private var untouched: [CID] = []

  init(_ side: MSTDiff.Side, root: CID) {
    self.side = side
    walker = MSTWalker(root: root)
    front = walker.next()
  }

  /// Enters the node at the front.
  mutating func open(_ node: CID, _ load: (CID, MSTDiff.Side) throws -> [UInt8]?) throws {
    guard let bytes = try load(node, side) else {
      throw MSTDiffError.missingNode(node, side, behind: walker.key)
    }
    walker.enter(bytes.span)
    untouched.append(node)
    try proceed()
  }

  /// Goes on behind the record at the front.
  mutating func take(_ each: (MSTDiff.Change) throws -> Void) throws {
    try touch(each)
    try proceed()
  }

  /// Goes on behind the subtree at the front, without loading it.
  mutating func skip(_ each: (MSTDiff.Change) throws -> Void) throws {
    walker.skip()
    try take(each)
  }

  /// Goes on behind a subtree that has been looked into, as if it had not; false if it is none of those.
  mutating func leave(_ node: CID, _ each: (MSTDiff.Change) throws -> Void) throws -> Bool {
    guard let index = untouched.firstIndex(of: node) else { return false }
    walker.leave(untouched.count - index)
    untouched.removeSubrange(index...)
    try take(each)
    return true
  }

  /// Gives out the nodes that are not the other tree's, as something of them is accounted for.
  mutating func touch(_ each: (MSTDiff.Change) throws -> Void) throws {
    for node in untouched { try each(side == .old ? .deletedNode(node) : .createdNode(node)) }
    untouched.removeAll(keepingCapacity: true)
  }

  private mutating func proceed() throws {
    front = walker.next()
    if let problem = walker.problems.first { throw MSTDiffError.malformed(problem, side) }
  }
}
