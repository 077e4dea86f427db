package import IPLD

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
/// A problem does not end the walk: it is noted in ``problems``, and the walk continues where that
/// can be done without going round in circles.
///
/// Invariants:
/// 1. `path` holds the nodes from the root to the current one; it is never longer than
///    ``MSTLayer/maximum`` + 2, and this, with what stands in these nodes, is all the memory the
///    walk takes.
/// 2. Keys that are given out ascend strictly. A node whose keys would not is left at once, so no
///    node's keys are given out twice, whatever its links say; and keys too long to be given out
///    keep to the same order, so none is walked 2^n times.
/// 3. No key is held beyond ``MSTWalker/maximumKeyLength`` bytes and one, however long the prefixes
///    that a node claims: each entry costs a bounded time.
package struct MSTWalker: Sendable {
  /// What comes next.
  package enum Step: Equatable, Sendable {
    /// This node is needed: call `enter(_:)`, or ``skip()`` if it is not available.
    case node(CID)
    /// A record; its key is ``key``.
    case record(CID)
  }

  /// The longest key that is given out; a longer one is illegal, and its record is passed over.
  package static let maximumKeyLength = RecordPath.maximumLength
  /// How many problems are kept; the rest are counted.
  package static let maximumProblems = 1000

  /// A node on the path to the current one.
  ///
  /// Data that may be large lies in stacks that all nodes of the path share, the current one's at
  /// the end: so entering a node takes no memory, once the stacks have grown.
  private struct Level {
    let cid: CID
    /// The digest of `cid`, to tell at a glance whether it is another.
    let digest: SHA256Digest?
    let left: CommonCID?
    /// Where the node's part of each stack begins.
    let start: Heights
    /// The layer its keys belong to; nil in a node without keys at the top.
    let layer: Int?
    /// The entry that comes next.
    var next: Int
    /// Which of ``places`` is of the next link.
    var nextPlace: Int
    /// Whether the subtree in front of that entry has been given out.
    var hasDescended = false
    /// The length of all of the key before, of which ``keys`` may hold only the start.
    var keyLength = 0
  }

  /// How high the stacks are.
  private typealias Heights = (entries: Int, suffixes: Int, places: Int, keys: Int)

  /// The key of the record that was given out last, `collection/rkey`.
  package private(set) var key: [UInt8] = []
  /// What `enter(_:locate:)` was given for the link that was returned last.
  package private(set) var place: Int?
  /// What is wrong with the tree, the first ``maximumProblems`` of it.
  package private(set) var problems: [MSTProblem] = []
  /// How many problems there are.
  package private(set) var problemCount = 0
  /// How many levels of nodes the deepest path has had so far.
  package private(set) var depth = 0
  /// The layer of the root's keys, once the root has been entered; nil if it has none.
  package private(set) var rootLayer: Int?

  private var path: [Level] = []
  /// The keys of the nodes on the path.
  private var entries: [MSTNode.Entry] = []
  /// The rests of these.
  private var suffixes: [UInt8] = []
  /// What the caller said of each link of these nodes, in their order; of a node of which it said
  /// nothing there is none.
  private var places: [Int?] = []
  /// The key of the entry before the next one of each node, or the start of it if it is too long.
  private var keys: [UInt8] = []
  /// What the node that is entered links to.
  private var links: [CommonCID] = []
  private var requested: CID?
  /// The layer of the node above the root; nil if it is the root of a whole tree.
  private let layerAbove: Int?
  private var hasKey = false
  /// The start of a key that was too long to be given out, if it came after ``key``.
  private var passedOver: [UInt8]?

  /// A walk from this root.
  package init(root: CID) {
    layerAbove = nil
    requested = root
  }

  /// A walk of the subtree that belongs to this layer of a tree.
  package init(subtree: CID, layer: Int) {
    layerAbove = layer + 1
    requested = subtree
  }

  /// The next step, or nil at the end.
  ///
  /// - Precondition: a node that was requested has been entered or skipped.
  package mutating func next() -> Step? {
    if let requested { return .node(requested) }
    while let last = path.indices.last {
      if !path[last].hasDescended {
        path[last].hasDescended = true
        let isFirst = path[last].next == path[last].start.entries
        if let link = isFirst ? path[last].left : entries[path[last].next - 1].rightLink {
          place = takePlace(last)
          requested = link.cid
          return .node(link.cid)
        }
      }
      guard path[last].next < entries.count else {
        leave()
        continue
      }
      guard let isGiven = advance(last) else {
        leave()
        continue
      }
      let place = takePlace(last)
      if isGiven {
        self.place = place
        return .record(entries[path[last].next - 1].value)
      }
    }
    return nil
  }

  /// What the caller said of the link of the current node that comes next.
  private mutating func takePlace(_ last: Int) -> Int? {
    let next = path[last].nextPlace
    guard next < places.count else { return nil }
    path[last].nextPlace = next + 1
    return places[next]
  }

  /// Leaves the current node.
  private mutating func leave() {
    if let left = path.popLast() { lower(to: left.start) }
  }

  private var heights: Heights { (entries.count, suffixes.count, places.count, keys.count) }

  private mutating func lower(to heights: Heights) {
    entries.removeLast(entries.count - heights.entries)
    suffixes.removeLast(suffixes.count - heights.suffixes)
    places.removeLast(places.count - heights.places)
    keys.removeLast(keys.count - heights.keys)
  }

  /// Takes the block of the node that was requested, and has all that it links to located.
  ///
  /// - Parameters:
  ///   - bytes: the block's body.
  ///   - locate: is given all links of the node, and appends a number for each, or nil, that
  ///     ``place`` gives back when the walk comes to the link. Looking up many at once in a large
  ///     table takes less time.
  package mutating func enter(
    _ bytes: Span<UInt8>, locate: ([CommonCID], inout [Int?]) -> Void = { _, _ in }
  ) {
    guard let cid = requested else { return }
    requested = nil
    let start = heights
    let left: CommonCID?
    do throws(MSTNode.Malformed) {
      left = try MSTNode.read(bytes, &entries, &suffixes)
    } catch {
      lower(to: start)
      note(.malformedNode(error), in: cid)
      return
    }
    guard let level = admit(cid, left, start) else {
      lower(to: start)
      return
    }
    if path.isEmpty { rootLayer = level.layer }
    path.append(level)
    depth = max(depth, path.count)
    links.removeAll(keepingCapacity: true)
    if let left { links.append(left) }
    for entry in entries[start.entries...] {
      links.append(entry.valueLink)
      if let right = entry.rightLink { links.append(right) }
    }
    locate(links, &places)
  }

  /// Checks whether the node that was read belongs where it stands; returns nil if it cannot be
  /// entered.
  private mutating func admit(_ cid: CID, _ left: CommonCID?, _ start: Heights) -> Level? {
    let isRoot = path.isEmpty && layerAbove == nil
    let digest = cid.multihash.sha256
    guard !path.indices.contains(where: { path[$0].digest == digest && path[$0].cid == cid }) else {
      note(.cycle, in: cid)
      return nil
    }
    let expected = requestedLayer
    if entries.count == start.entries {
      if left == nil && !isRoot { note(.emptyLeaf, in: cid) }
      if left != nil && isRoot { note(.untrimmedTop, in: cid) }
    }
    var layer = expected
    // With a prefix it is not a key, which shows when its turn comes.
    if entries.count > start.entries, entries[start.entries].prefixLength == 0 {
      let suffixes = suffixes
      let firstKey = suffixes.span.extracting(entries[start.entries].suffix)
      // A node that has been here before, or lies in the wrong place, shows it with its first key.
      if left == nil, !follows(firstKey) {
        note(.keysNotAscending, in: cid, key: firstKey.array)
        return nil
      }
      layer = MSTLayer.layer(of: firstKey)
      if let expected, layer != expected { note(.wrongLayer, in: cid, key: firstKey.array) }
    } else if let expected, expected < 0 {
      note(.wrongLayer, in: cid)
    }
    guard path.count <= MSTLayer.maximum + 1 else {
      note(.tooDeep, in: cid)
      return nil
    }
    return Level(
      cid: cid, digest: digest, left: left, start: start, layer: layer, next: start.entries,
      nextPlace: start.places)
  }

  /// Continues after the node that was requested, and everything below it, because all of that is
  /// known from another walk.
  ///
  /// What is checked is that the subtree fits where it stands. After this ``key`` is its last key.
  package mutating func pass(_ subtree: MSTSubtree) {
    guard let cid = requested else { return }
    requested = nil
    if let above = path.last?.layer, subtree.layer != above - 1 { note(.wrongLayer, in: cid) }
    guard follows(subtree.firstKey.span) else {
      note(.keysNotAscending, in: cid, key: subtree.firstKey)
      return
    }
    if path.isEmpty { rootLayer = subtree.layer }
    key = subtree.lastKey
    hasKey = true
    passedOver = nil
  }

  /// How many nodes lie above what was given out last.
  package var height: Int { path.count }

  /// Records that a subtree that was passed has made a path so deep.
  package mutating func noteDepth(_ levels: Int) { depth = max(depth, levels) }

  /// Goes on without the node that was requested.
  package mutating func skip() { requested = nil }

  /// The layer that the node that was asked for belongs to, as the node above it has it; nil for
  /// the root.
  package var requestedLayer: Int? {
    (path.isEmpty ? layerAbove : path.last.flatMap(\.layer)).map { $0 - 1 }
  }

  /// Leaves the nodes that were entered last, this many of them, and continues after the uppermost
  /// as if it had been skipped.
  ///
  /// - Precondition: nothing after them has been given out.
  mutating func leave(_ count: Int) {
    requested = nil
    // The root of an empty tree is left as soon as it is entered.
    for _ in 0..<min(count, path.count) { leave() }
  }

  /// Goes on without the node that was requested, because it has been walked already: no tree holds
  /// a node twice.
  package mutating func skipRepeated() {
    if let requested { note(.repeatedNode, in: requested) }
    requested = nil
  }

  /// Goes on to the next entry, makes `key` its key, and checks it.
  ///
  /// - Returns: false if the key is too long to be one; nil if the node cannot be read on.
  private mutating func advance(_ last: Int) -> Bool? {
    let isFirst = path[last].next == path[last].start.entries
    let entry = entries[path[last].next]
    path[last].next += 1
    path[last].hasDescended = false
    guard
      let couldShareMore = MSTNode.read(
        entry, suffixes, &keys, from: path[last].start.keys, &path[last].keyLength)
    else {
      note(.prefixNotMaximal, in: path[last].cid)
      return nil
    }
    let keys = keys
    let new = keys.span.extracting(path[last].start.keys..<keys.count)
    if couldShareMore { note(.prefixNotMaximal, in: path[last].cid, key: new.array) }
    guard new.count <= Self.maximumKeyLength else {
      note(.illegalKey, in: path[last].cid, key: new.array)
      // Nothing below a node that was walked before may be walked again.
      guard follows(new) || !isFirst && passedOver == new.array else {
        return nil
      }
      passedOver = new.array
      return false
    }
    guard follows(new) else {
      note(.keysNotAscending, in: path[last].cid, key: new.array)
      return nil
    }
    if !RecordPath.isValid(new) { note(.illegalKey, in: path[last].cid, key: new.array) }
    if !isFirst, MSTLayer.layer(of: new) != path[last].layer {
      note(.wrongLayer, in: path[last].cid, key: new.array)
    }
    key.removeAll(keepingCapacity: true)
    key.append(contentsOf: new)
    hasKey = true
    passedOver = nil
    return true
  }

  /// Whether a key may come next: after all that came, those that were too long among them.
  private func follows(_ new: Span<UInt8>) -> Bool {
    if let passedOver { return precedes(passedOver, new) }
    return !hasKey || precedes(key, new)
  }

  private func precedes(_ left: [UInt8], _ right: Span<UInt8>) -> Bool {
    let shared = right.countShared(with: left.span)
    guard shared < left.count, shared < right.count else { return left.count < right.count }
    return left[shared] < right[shared]
  }

  private mutating func note(
    _ kind: MSTProblem.Kind, in node: CID, key: @autoclosure () -> [UInt8]? = nil
  ) {
    problemCount += 1
    if problems.count < Self.maximumProblems {
      let key = key().map { Array($0.prefix(Self.maximumKeyLength + 1)) }
      problems.append(MSTProblem(kind: kind, node: node, key: key))
    }
  }
}
