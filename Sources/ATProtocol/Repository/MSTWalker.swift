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
///    twice, whatever its links say.
public struct MSTWalker: Sendable {
  /// What comes next.
  public enum Step: Equatable, Sendable {
    /// This node is needed: call ``enter(_:)``, or ``skip()`` if it is not to be had.
    case node(CID)
    /// A record; its key is ``key``.
    case record(CID)
  }

  /// How many problems are kept; the rest are counted.
  public static let maximumProblems = 1000

  /// A node on the path to the current one.
  private struct Level {
    let cid: CID
    let node: MSTNode
    /// The layer its keys belong to; nil in a node without keys at the top.
    var layer: Int?
    /// The entry that comes next.
    var next = 0
    /// Whether the subtree in front of that entry has been given out.
    var hasDescended = false
    /// The key of the entry before.
    var key: [UInt8] = []
  }

  /// The key of the record that was given out last, `collection/rkey`.
  public private(set) var key: [UInt8] = []
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
  private let root: CID
  private var hasKey = false

  /// A walk from this root.
  public init(root: CID) {
    self.root = root
    requested = root
  }

  /// The next step, or nil at the end.
  ///
  /// - Precondition: a node that was asked for has been entered or skipped.
  public mutating func next() -> Step? {
    if let requested { return .node(requested) }
    while let last = path.indices.last {
      if !path[last].hasDescended {
        path[last].hasDescended = true
        if let subtree = subtree(before: path[last].next, of: path[last].node) {
          requested = subtree
          return .node(subtree)
        }
      }
      let index = path[last].next
      guard index < path[last].node.entries.count else {
        path.removeLast()
        continue
      }
      path[last].next += 1
      path[last].hasDescended = false
      guard advance(last, to: index) else {
        path.removeLast()
        continue
      }
      return .record(path[last].node.entries[index].value)
    }
    return nil
  }

  /// Takes the block of the node that was asked for.
  public mutating func enter(_ bytes: Span<UInt8>) {
    guard let cid = requested else { return }
    requested = nil
    let node: MSTNode
    do throws(MSTNode.Malformed) {
      node = try MSTNode(bytes)
    } catch {
      note(.malformedNode(error), in: cid)
      return
    }
    let isRoot = path.isEmpty
    guard !path.contains(where: { $0.cid == cid }) else {
      note(.cycle, in: cid)
      return
    }
    let expected = path.last.map { $0.layer.map { $0 - 1 } } ?? nil
    if node.entries.isEmpty {
      if node.left == nil && !isRoot { note(.emptyLeaf, in: cid) }
      if node.left != nil && isRoot { note(.untrimmedTop, in: cid) }
    }
    var layer = expected
    if let first = node.entries.first {
      let firstKey = node.suffixes.span.extracting(first.suffix)
      if first.prefixLength != 0 { note(.prefixNotMaximal, in: cid, key: firstKey.array) }
      // A node that has been here before, or lies in the wrong place, shows it with its first key.
      if node.left == nil, hasKey, !precedes(key, firstKey) {
        note(.keysNotAscending, in: cid, key: firstKey.array)
        return
      }
      layer = MSTLayer.layer(of: firstKey)
      if let expected, layer != expected { note(.wrongLayer, in: cid, key: firstKey.array) }
    }
    if !isRoot, let layer = expected, layer < 0 {
      note(.wrongLayer, in: cid)
      if path.count > MSTLayer.maximum { return }
    }
    if path.count > MSTLayer.maximum + 1 {
      note(.tooDeep, in: cid)
      return
    }
    if isRoot { rootLayer = layer }
    path.append(Level(cid: cid, node: node, layer: layer))
    depth = max(depth, path.count)
  }

  /// Goes on without the node that was asked for.
  public mutating func skip() { requested = nil }

  /// Goes on without the node that was asked for, because it has been walked already: no tree holds a node twice.
  public mutating func skipRepeated() {
    if let requested { note(.repeatedNode, in: requested) }
    requested = nil
  }

  private func subtree(before index: Int, of node: MSTNode) -> CID? {
    index == 0 ? node.left : node.entries[index - 1].right
  }

  /// Makes `key` the key of an entry, and checks it; false when the node has to be left.
  private mutating func advance(_ last: Int, to index: Int) -> Bool {
    let entry = path[last].node.entries[index]
    let previousLength = path[last].key.count
    guard entry.prefixLength <= previousLength else {
      note(.prefixNotMaximal, in: path[last].cid)
      return false
    }
    let suffixes = path[last].node.suffixes
    let suffix = suffixes.span.extracting(entry.suffix)
    if index > 0, entry.prefixLength < previousLength, !suffix.isEmpty,
      path[last].key[entry.prefixLength] == suffix[0]
    {
      note(.prefixNotMaximal, in: path[last].cid, key: path[last].key)
    }
    var new = path[last].key
    path[last].key = []
    new.removeLast(previousLength - entry.prefixLength)
    new.append(contentsOf: suffix)
    guard !hasKey || precedes(key, new.span) else {
      note(.keysNotAscending, in: path[last].cid, key: new)
      return false
    }
    if !RecordPath.isTreeKey(new.span) { note(.illegalKey, in: path[last].cid, key: new) }
    if index > 0, MSTLayer.layer(of: new.span) != path[last].layer {
      note(.wrongLayer, in: path[last].cid, key: new)
    }
    path[last].key = new
    key.removeAll(keepingCapacity: true)
    key.append(contentsOf: new)
    hasKey = true
    return true
  }

  private func precedes(_ left: [UInt8], _ right: Span<UInt8>) -> Bool {
    let shared = min(left.count, right.count)
    var index = 0
    while index < shared {
      if left[index] != right[index] { return left[index] < right[index] }
      index += 1
    }
    return left.count < right.count
  }

  private mutating func note(_ kind: MSTProblem.Kind, in node: CID, key: [UInt8]? = nil) {
    problemCount += 1
    if problems.count < Self.maximumProblems {
      problems.append(MSTProblem(kind: kind, node: node, key: key))
    }
  }
}

/// One thing that is wrong with a tree, and where.
public struct MSTProblem: Equatable, Sendable, CustomStringConvertible {
  /// The rules a tree can break.
  public enum Kind: Equatable, Sendable {
    /// The block is not a tree node.
    case malformedNode(MSTNode.Malformed)
    /// A node lies below itself.
    case cycle
    /// A node occurs twice in the tree.
    case repeatedNode
    /// A key shares more with the one before it than it says, or less.
    case prefixNotMaximal
    /// A key does not sort after the one before it.
    case keysNotAscending
    /// A key that is no record path.
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
  public let kind: Kind
  /// In which node.
  public let node: CID
  /// At which key, where one is at fault.
  public let key: [UInt8]?

  /// What a person reads.
  public var description: String {
    let what =
      switch kind {
      case .malformedNode(let error):
        "the block is not a tree node (byte \(error.offset)"
          + (error.reason.map { ", \($0)" } ?? "") + ")"
      case .cycle: "the node lies below itself"
      case .repeatedNode: "the node occurs twice in the tree"
      case .prefixNotMaximal: "the key's shared prefix is not what it should be"
      case .keysNotAscending: "the key does not sort after the one before it"
      case .illegalKey: "the key is not a legal record path"
      case .wrongLayer: "the key or node is in the wrong layer"
      case .emptyLeaf: "the node is empty"
      case .untrimmedTop: "the root has no keys of its own"
      case .tooDeep: "the tree is deeper than it can be"
      }
    let place = key.map { ", key \(quoted($0))" } ?? ""
    return "\(what): node \(node)\(place)"
  }

  private func quoted(_ key: [UInt8]) -> String {
    let text = key.prefix(200).map { byte in
      (0x21...0x7e).contains(byte) ? String(UnicodeScalar(byte)) : "\\x\(Hex.encode([byte]))"
    }
    return text.joined() + (key.count > 200 ? "…" : "")
  }
}
