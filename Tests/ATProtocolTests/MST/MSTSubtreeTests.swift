import ATProtocol
import IPLD
import Repository
import TestSupport
import Testing

@Suite struct `A subtree that is known from another walk` {
  private typealias Entry = HandMadeTree.Entry

  /// A tree of two layers under a root, with what is to be known of it.
  private struct Known {
    var tree = HandMadeTree()
    let keys = [key("c"), key("d", layer: 1), key("e")]
    let root: CID
    let subtree: MSTSubtree

    init() {
      let first = tree.add(Entry(key: keys[0]))
      let last = tree.add(Entry(key: keys[2]))
      root = tree.add(left: first, Entry(key: keys[1], right: last))
      subtree = MSTSubtree(layer: 1, firstKey: keys[0], lastKey: keys[2])
    }
  }

  /// What is wrong with a tree, and which keys it gives out, when the subtree is passed over.
  private func walk(_ known: Known, from root: CID) -> (
    problems: [MSTProblem.Kind], keys: [[UInt8]], rootLayer: Int?
  ) {
    var walker = MSTWalker(root: root)
    var keys: [[UInt8]] = []
    while let step = walker.next() {
      switch step {
      case .node(known.root): walker.pass(known.subtree)
      case .node(let cid):
        if let bytes = known.tree.blocks[cid] { walker.enter(bytes.span) } else { walker.skip() }
      case .record: keys.append(walker.key)
      }
    }
    return (walker.problems.map(\.kind), keys, walker.rootLayer)
  }

  /// Whether passing over the subtree finds something wrong wherever entering it does.
  private func expectSame(
    _ known: Known, from root: CID, _ location: SourceLocation = #_sourceLocation
  ) {
    let passing = walk(known, from: root)
    let entering = known.tree.walk(from: root)
    #expect(passing.problems.isEmpty == entering.problems.isEmpty, sourceLocation: location)
    #expect(passing.problems.first == entering.problems.first?.kind, sourceLocation: location)
  }

  @Test func `is passed over where it fits`() {
    var known = Known()
    let (before, after) = (key("b", layer: 2), key("f", layer: 2))
    let root = known.tree.add(Entry(key: before, right: known.root), Entry(key: after))
    let found = walk(known, from: root)
    #expect(found.problems == [])
    #expect(found.keys == [before, after])
    #expect(found.rootLayer == 2)
    expectSame(known, from: root)
    // It may be the whole tree, or lie below a node without keys.
    #expect(walk(known, from: known.root).rootLayer == 1)
    let between = known.tree.add(left: known.root)
    let higher = known.tree.add(left: between, Entry(key: key("f", layer: 3)))
    expectSame(known, from: higher)
    #expect(walk(known, from: higher).problems == [])
  }

  @Test func `is a problem in another layer`() {
    var known = Known()
    let root = known.tree.add(Entry(key: key("b", layer: 3), right: known.root))
    #expect(walk(known, from: root).problems == [.wrongLayer])
    expectSame(known, from: root)
  }

  @Test func `is a problem behind a key that its own do not follow`() {
    var known = Known()
    // Before it, within it, after it.
    for start in ["d", "e", "f"] {
      let root = known.tree.add(Entry(key: key(start, layer: 2), right: known.root))
      #expect(walk(known, from: root).problems == [.keysNotAscending])
      expectSame(known, from: root)
    }
  }

  @Test func `is a problem before a key that does not follow its own`() {
    var known = Known()
    for start in ["b", "d"] {
      let root = known.tree.add(left: known.root, Entry(key: key(start, layer: 2)))
      #expect(walk(known, from: root).problems == [.keysNotAscending])
      expectSame(known, from: root)
    }
  }

  @Test func `is a problem when it comes twice`() {
    var known = Known()
    let root = known.tree.add(
      left: known.root, Entry(key: key("f", layer: 2), right: known.root))
    #expect(walk(known, from: root).problems == [.keysNotAscending])
    expectSame(known, from: root)
  }

  @Test func `changes nothing when no node was asked for`() {
    let known = Known()
    var walker = MSTWalker(root: known.root)
    walker.skip()
    walker.pass(known.subtree)
    #expect(walker.next() == nil)
    #expect(walker.key == [])
  }

  @Test func `has the keys of its nodes, put together whole`() throws {
    var known = Known()
    let cid = known.tree.add(
      Entry(key: key("app")), Entry(key: key("apple")), Entry(key: key("b")))
    let bytes = try #require(known.tree.blocks[cid])
    let node = try MSTNode(bytes.span)
    #expect(node.keys == [key("app"), key("apple"), key("b")])
    let emptyCID = known.tree.add()
    let empty = try #require(known.tree.blocks[emptyCID])
    #expect(try MSTNode(empty.span).keys == [])
    let brokenCID = known.tree.add(Entry(key: key("a")), Entry(key: key("b"), sharing: 999))
    let broken = try #require(known.tree.blocks[brokenCID])
    #expect(try MSTNode(broken.span).keys == nil)
  }
}
