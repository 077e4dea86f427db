public import IPLD

/// Walks a Merkle Search Tree from left to right and checks every rule it has to keep.
///
/// It does no I/O: it asks for nodes and is given them.
///
/// ```swift
/// var walker = MSTWalker(root: commit.data)
/// while let step = walker.next() {
///   switch step {
///   case .node(let cid): if let bytes = blocks[cid] { walker.enter(bytes.span) } else { walker.skip() }
///   case .record(let cid): use(walker.key, cid)
///   }
/// }
/// ```
///
/// A problem does not end the walk: it is noted in ``problems``, and the walk goes on where that can be done without going round in
/// circles.
///
/// Invariants:
/// 1. `path` holds the nodes from the root to the current one; it is never longer than ``MSTLayer/maximum`` + 2, and this is
///    all the memory the walk takes.
/// 2. Keys that are given out ascend strictly. A node whose keys would not is left at once, so no node's keys are given out
///    twice, whatever its links say; and keys too long to be given out keep to the same order, so none is walked 2^n times.
/// 3. No key is held beyond ``MSTWalker/maximumKeyLength`` bytes and one, however long the prefixes that a node claims: each entry
///    costs a bounded time.
public struct MSTWalker: Sendable {
  /// What comes next.
  public enum Step: Equatable, Sendable {
    /// This node is needed: call ``enter(_:)``, or ``skip()`` if it is not to be had.
    case node(CID)
    /// A record; its key is ``key``.
    case record(CID)
  }

  /// The longest key that is given out; a longer one is illegal, and its record is passed over.
  public static let maximumKeyLength = RecordPath.maximumLength
  /// How many problems are kept; the rest are counted.
  public static let maximumProblems = 1000

  /// A node on the path to the current one.
  private struct Level {
    let cid: CID
    /// The digest of `cid`, to tell at a glance whether it is another.
    let digest: SHA256Digest?
    let node: MSTNode
    /// What the caller said of each link, in their order; empty if it said nothing.
    let places: [Int?]
    /// Which of ``places`` is of the next link.
    var nextPlace = 0
    /// The layer its keys belong to; nil in a node without keys at the top.
    var layer: Int?
    /// The entry that comes next.
    var next = 0
    /// Whether the subtree in front of that entry has been given out.
    var hasDescended = false
    /// The key of the entry before, or the start of it if it is too long.
    var key: [UInt8] = []
    /// The length of all of that key.
    var keyLength = 0

    init(cid: CID, node: MSTNode, layer: Int?, locate: ([CommonCID]) -> [Int?]) {
      self.cid = cid
      digest = cid.multihash.sha256
      self.node = node
      self.layer = layer
      places = locate(node.links)
    }

    /// What the caller said of the link that comes next.
    private mutating func takePlace() -> Int? {
      guard nextPlace < places.count else { return nil }
      defer { nextPlace += 1 }
      return places[nextPlace]
    }

    /// The subtree in front of the entry that comes next, the first time it is asked for.
    mutating func descend() -> (CID, place: Int?)? {
      guard !hasDescended else { return nil }
      hasDescended = true
      guard let link = next == 0 ? node.leftLink : node.entries[next - 1].rightLink else {
        return nil
      }
      return (link.cid, takePlace())
    }

    /// The record of the entry that came last, which is asked for once.
    mutating func record() -> (CID, place: Int?) { (node.entries[next - 1].value, takePlace()) }

    /// Goes on to the next entry and makes `key` its key; nil when its prefix is longer than the key before it.
    ///
    /// - Returns: whether the key could share more with the one before it than it says.
    mutating func readKey() -> Bool? {
      let entry = node.entries[next]
      next += 1
      hasDescended = false
      guard entry.prefixLength <= keyLength else { return nil }
      let suffixes = node.suffixes
      let suffix = suffixes.span.extracting(entry.suffix)
      let couldShareMore =
        entry.prefixLength < key.count && !suffix.isEmpty && key[entry.prefixLength] == suffix[0]
      key.removeLast(max(0, key.count - entry.prefixLength))
      key.append(contentsOf: suffix.extracting(first: MSTWalker.maximumKeyLength + 1 - key.count))
      keyLength = entry.prefixLength + suffix.count
      return couldShareMore
    }
  }

  /// The key of the record that was given out last, `collection/rkey`.
  public private(set) var key: [UInt8] = []
  /// What `enter(_:locate:)` was told of the link that was given out last.
  public private(set) var place: Int?
  /// What is wrong with the tree, the first ``maximumProblems`` of it.
  public private(set) var problems: [MSTProblem] = []
  /// How many problems there are.
  public private(set) var problemCount = 0
  /// How many levels of nodes the deepest path has had so far.
  public private(set) var depth = 0
  /// The layer of the root's keys, once the root has been entered; nil if it has none.
  public private(set) var rootLayer: Int?

  private var path: [Level] = []
  private var requested: CID?
  /// The layer of the node above the root; nil if it is the root of a whole tree.
  private let layerAbove: Int?
  private var hasKey = false
  /// The start of a key that was too long to be given out, if it came after ``key``.
  private var passedOver: [UInt8]?

  /// A walk from this root.
  public init(root: CID) {
    layerAbove = nil
    requested = root
  }

  /// A walk of the subtree that belongs to this layer of a tree.
  init(subtree: CID, layer: Int) {
    layerAbove = layer + 1
    requested = subtree
  }

  /// The next step, or nil at the end.
  ///
  /// - Precondition: a node that was asked for has been entered or skipped.
  public mutating func next() -> Step? {
    if let requested { return .node(requested) }
    while let last = path.indices.last {
      if let (subtree, place) = path[last].descend() {
        self.place = place
        requested = subtree
        return .node(subtree)
      }
      guard path[last].next < path[last].node.entries.count else {
        path.removeLast()
        continue
      }
      switch advance(last) {
      case .given:
        let (record, place) = path[last].record()
        self.place = place
        return .record(record)
      case .passedOver: _ = path[last].record()
      case .leaves: path.removeLast()
      }
    }
    return nil
  }

  /// Takes the block of the node that was asked for.
  public mutating func enter(_ bytes: Span<UInt8>) { enter(bytes) { _ in [] } }

  /// Takes the block of the node that was asked for, and has all that it links to located.
  ///
  /// - Parameters:
  ///   - bytes: the block's body.
  ///   - locate: is asked of all links of the node for a number each, or nil, that ``place`` gives back when the walk comes
  ///     to the link. Looking up many at once in a large table takes less time.
  package mutating func enter(
    _ bytes: Span<UInt8>, locate: ([CommonCID]) -> [Int?]
  ) {
    guard let cid = requested else { return }
    requested = nil
    let node: MSTNode
    do throws(MSTNode.Malformed) {
      node = try MSTNode(bytes)
    } catch {
      note(.malformedNode(error), in: cid)
      return
    }
    let isRoot = path.isEmpty && layerAbove == nil
    let digest = cid.multihash.sha256
    guard !path.indices.contains(where: { path[$0].digest == digest && path[$0].cid == cid }) else {
      note(.cycle, in: cid)
      return
    }
    let expected = requestedLayer
    if node.entries.isEmpty {
      if node.left == nil && !isRoot { note(.emptyLeaf, in: cid) }
      if node.left != nil && isRoot { note(.untrimmedTop, in: cid) }
    }
    var layer = expected
    // With a prefix it is no key, which shows when its turn comes.
    if let first = node.entries.first, first.prefixLength == 0 {
      let firstKey = node.suffixes.span.extracting(first.suffix)
      // A node that has been here before, or lies in the wrong place, shows it with its first key.
      if node.left == nil, !follows(firstKey) {
        note(.keysNotAscending, in: cid, key: firstKey)
        return
      }
      layer = MSTLayer.layer(of: firstKey)
      if let expected, layer != expected { note(.wrongLayer, in: cid, key: firstKey) }
    } else if let expected, expected < 0 {
      note(.wrongLayer, in: cid)
    }
    if path.count > MSTLayer.maximum + 1 {
      note(.tooDeep, in: cid)
      return
    }
    if path.isEmpty { rootLayer = layer }
    path.append(Level(cid: cid, node: node, layer: layer, locate: locate))
    depth = max(depth, path.count)
  }

  /// Goes on behind the node that was asked for, and everything below it, because all of that is known from another walk.
  ///
  /// What is checked is that the subtree fits where it stands. After this ``key`` is its last key.
  public mutating func pass(_ subtree: MSTSubtree) {
    guard let cid = requested else { return }
    requested = nil
    if let above = path.last?.layer, subtree.layer != above - 1 { note(.wrongLayer, in: cid) }
    guard follows(subtree.firstKey.span) else {
      note(.keysNotAscending, in: cid, key: subtree.firstKey.span)
      return
    }
    if path.isEmpty { rootLayer = subtree.layer }
    key = subtree.lastKey
    hasKey = true
    passedOver = nil
  }

  /// How many nodes lie above what was given out last.
  var height: Int { path.count }

  /// Takes note that a subtree that was passed has made a path so deep.
  mutating func noteDepth(_ levels: Int) { depth = max(depth, levels) }

  /// Goes on without the node that was asked for.
  public mutating func skip() { requested = nil }

  /// The layer that the node that was asked for belongs to, as the node above it has it; nil for the root.
  var requestedLayer: Int? {
    (path.isEmpty ? layerAbove : path.last.flatMap(\.layer)).map { $0 - 1 }
  }

  /// Leaves the nodes that were entered last, so many of them, and goes on behind the uppermost as if it had been skipped.
  ///
  /// - Precondition: nothing behind them has been given out.
  mutating func leave(_ count: Int) {
    requested = nil
    // The root of an empty tree is left as soon as it is entered.
    path.removeLast(min(count, path.count))
  }

  /// Goes on without the node that was asked for, because it has been walked already: no tree holds a node twice.
  public mutating func skipRepeated() {
    if let requested { note(.repeatedNode, in: requested) }
    requested = nil
  }

  /// What became of an entry.
  private enum Advance {
    /// Its key is ``key``.
    case given
    /// Its key is too long to be one.
    case passedOver
    /// Its node cannot be read on.
    case leaves
  }

  /// Makes `key` the key of the next entry, and checks it.
  private mutating func advance(_ last: Int) -> Advance {
    let isFirst = path[last].next == 0
    guard let couldShareMore = path[last].readKey() else {
      note(.prefixNotMaximal, in: path[last].cid)
      return .leaves
    }
    let new = path[last].key
    if couldShareMore { note(.prefixNotMaximal, in: path[last].cid, key: new.span) }
    guard new.count <= Self.maximumKeyLength else {
      note(.illegalKey, in: path[last].cid, key: new.span)
      // Of a node that was here before, nothing may be walked again.
      guard follows(new.span) || !isFirst && passedOver == new else { return .leaves }
      passedOver = new
      return .passedOver
    }
    guard follows(new.span) else {
      note(.keysNotAscending, in: path[last].cid, key: new.span)
      return .leaves
    }
    if !RecordPath.isTreeKey(new.span) { note(.illegalKey, in: path[last].cid, key: new.span) }
    if !isFirst, MSTLayer.layer(of: new.span) != path[last].layer {
      note(.wrongLayer, in: path[last].cid, key: new.span)
    }
    key.removeAll(keepingCapacity: true)
    key.append(contentsOf: new)
    hasKey = true
    passedOver = nil
    return .given
  }

  /// Whether a key may come next: behind all that came, those that were too long among them.
  private func follows(_ new: Span<UInt8>) -> Bool {
    if let passedOver { return precedes(passedOver, new) }
    return !hasKey || precedes(key, new)
  }

  private func precedes(_ left: [UInt8], _ right: Span<UInt8>) -> Bool {
    let shared = right.countShared(with: left.span)
    guard shared < left.count, shared < right.count else { return left.count < right.count }
    return left[shared] < right[shared]
  }

  private mutating func note(_ kind: MSTProblem.Kind, in node: CID) {
    problemCount += 1
    if problems.count < Self.maximumProblems {
      problems.append(MSTProblem(kind: kind, node: node, key: nil))
    }
  }

  private mutating func note(_ kind: MSTProblem.Kind, in node: CID, key: Span<UInt8>) {
    problemCount += 1
    if problems.count < Self.maximumProblems {
      let kept = key.extracting(first: Self.maximumKeyLength + 1)
      problems.append(MSTProblem(kind: kind, node: node, key: kept.array))
    }
  }
}
