package import ATProtocol
package import IPLD

/// Walks the tree of a commit through the blocks of a source: every node once, every record under
/// each of its keys.
///
/// It answers which blocks a commit reaches. The caller decides what to do with them.
///
/// ```swift
/// var fold = TreeFold(source, root: commit.data)
/// while let step = fold.next() {
///   switch step {
///   case .node(let number): nodes.append(number)
///   case .record(let cid, let number): use(fold.key, cid, number)
///   case .missingNode(let cid): report(cid)
///   case .subtree: break
///   }
/// }
/// ```
package struct TreeFold<Source: BlockSource>: Sendable {
  /// What the walk has come to.
  package enum Step: Sendable {
    /// A node, which has been entered.
    case node(Int)
    /// A node that is not there; each is reported once.
    case missingNode(CID)
    /// A record, with the number of its block, or nil if that is missing. Its key is ``key``.
    case record(CID, Int?)
    /// A node at ``depthLimit``, which is not entered: call ``pass(_:)``, or go on without it.
    case subtree(CID)
  }

  /// Where the blocks are.
  package let source: Source
  /// The nodes that have been entered.
  package private(set) var nodes: BlockSet
  /// The walk through the tree: its problems, and how deep it went.
  package private(set) var walker: MSTWalker
  /// How many levels of nodes are entered; nil for all.
  private let depthLimit: Int?
  /// The blocks that count as there; nil for all.
  private let blocks: BlockSet?
  private var missingNodes: Set<CID> = []
  private var hasSubtree = false

  /// The walk of a whole tree.
  ///
  /// - Parameters:
  ///   - source: where its blocks are.
  ///   - root: its root.
  ///   - blocks: the blocks that count as there; nil for all.
  package init(_ source: Source, root: CID, within blocks: BlockSet? = nil) {
    self.init(source, MSTWalker(root: root), within: blocks)
  }

  /// A walk of part of a tree, of which some nodes have been entered.
  init(
    _ source: Source, _ walker: MSTWalker, within blocks: BlockSet? = nil, nodes: BlockSet? = nil,
    depthLimit: Int? = nil
  ) {
    (self.source, self.walker, self.blocks) = (source, walker, blocks)
    self.depthLimit = depthLimit
    self.nodes = nodes ?? BlockSet(count: source.numberLimit)
  }

  /// The key of the record that came last, `collection/rkey`.
  package var key: [UInt8] { walker.key }

  /// Whether every node was there, and the tree keeps the rules, as far as it has been walked.
  package var isWhole: Bool { missingNodes.isEmpty && walker.problemCount == 0 }

  /// The next step; nil at the end.
  package mutating func next() -> Step? {
    if hasSubtree { walker.skip() }
    hasSubtree = false
    while let step = walker.next() {
      switch step {
      case .record(let cid): return .record(cid, number(of: cid))
      case .node(let cid):
        if let depthLimit, walker.height >= depthLimit {
          hasSubtree = true
          return .subtree(cid)
        }
        guard let number = number(of: cid) else {
          walker.skip()
          if missingNodes.insert(cid).inserted { return .missingNode(cid) }
          continue
        }
        guard !nodes.contains(number) else {
          walker.skipRepeated()
          continue
        }
        nodes.insert(number)
        let source = source
        source.withBody(number) { body in
          walker.enter(body) { source.appendNumbers(of: $0, to: &$1) }
        }
        return .node(number)
      }
    }
    return nil
  }

  /// Continues after a subtree that is known from another walk.
  mutating func pass(_ subtree: MSTSubtree) {
    hasSubtree = false
    walker.pass(subtree)
  }

  private func number(of cid: CID) -> Int? {
    guard let number = walker.place ?? source.number(of: cid), blocks?.contains(number) ?? true
    else { return nil }
    return number
  }
}
