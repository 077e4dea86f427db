import ATProtocol
import IPLD
import Repository
import Testing

@Suite struct `Walking a tree` {
  private typealias Entry = HandMadeTree.Entry

  @Test func `gives out the keys of all layers in order, each with its record`() {
    var tree = HandMadeTree()
    let first = tree.add(Entry(key: key("a"), value: .example(1)))
    let last = tree.add(Entry(key: key("c"), value: .example(3)))
    let middle = key("b", layer: 1)
    let root = tree.add(left: first, Entry(key: middle, value: .example(2), right: last))
    let walk = tree.walk(from: root)
    #expect(walk.keys == [key("a"), middle, key("c")])
    #expect(walk.leaves.map(\.value) == [.example(1), .example(2), .example(3)])
    #expect(walk.problems == [])
    #expect(walk.rootLayer == 1)
    #expect(walk.depth == 2)
    #expect(walk.rebuilt().root == root)
  }

  @Test func `an empty tree is one empty node`() {
    var tree = HandMadeTree()
    let root = tree.add()
    let walk = tree.walk(from: root)
    #expect(walk.leaves.isEmpty)
    #expect(walk.problems == [])
    #expect(walk.rootLayer == nil)
    #expect(walk.depth == 1)
    #expect(build([]).root == root)
  }

  @Test func `passes through a node without keys between two layers`() {
    var tree = HandMadeTree()
    let bottom = tree.add(Entry(key: key("a")))
    let between = tree.add(left: bottom)
    let root = tree.add(left: between, Entry(key: key("b", layer: 2)))
    let walk = tree.walk(from: root)
    #expect(walk.problems == [])
    #expect(walk.keys == [key("a"), key("b", layer: 2)])
    #expect(walk.rebuilt().root == root)
  }

  @Test func `names every missing node and goes on behind it`() {
    var tree = HandMadeTree()
    let root = tree.add(
      left: .example(1), Entry(key: key("b", layer: 1), right: .example(2)),
      Entry(key: key("d", layer: 1)), Entry(key: key("e", layer: 1), right: .example(3)))
    let walk = tree.walk(from: root)
    #expect(walk.missing == [.example(1), .example(2), .example(3)])
    #expect(walk.keys.count == 3)
    #expect(walk.problems == [])
  }

  @Test func `a missing root is a walk of nothing`() {
    let walk = HandMadeTree().walk(from: .example())
    #expect(walk.missing == [.example()])
    #expect(walk.leaves.isEmpty)
    #expect(walk.depth == 0)
  }

  @Test func `asks for the same node until it is entered or skipped`() {
    var walker = MSTWalker(root: .example())
    #expect(walker.next() == .node(.example()))
    #expect(walker.next() == .node(.example()))
    walker.skip()
    #expect(walker.next() == nil)
    #expect(walker.next() == nil)
  }
}

/// One tree for each rule, broken once: the walk reports that rule, once, at that node and key.
@Suite struct `A broken tree` {
  private typealias Entry = HandMadeTree.Entry

  private func expect(
    _ problems: [MSTProblem], in tree: HandMadeTree, from root: CID, keys: [[UInt8]],
    _ location: SourceLocation = #_sourceLocation
  ) {
    let walk = tree.walk(from: root)
    #expect(walk.problems == problems, sourceLocation: location)
    #expect(walk.problemCount == problems.count, sourceLocation: location)
    #expect(walk.keys == keys, sourceLocation: location)
  }

  @Test func `a block that is no node is malformed, and its neighbours are walked`() {
    var tree = HandMadeTree()
    let odd = tree.add(.map(["e": .array([])]))
    let root = tree.add(left: odd, Entry(key: key("b", layer: 1)))
    let malformed = MSTNode.Malformed(reason: nil, offset: 0)
    expect(
      [MSTProblem(kind: .malformedNode(malformed), node: odd, key: nil)], in: tree, from: root,
      keys: [key("b", layer: 1)])
  }

  @Test func `a cycle ends where it closes`() {
    var tree = HandMadeTree()
    let top = CID.example()
    let below = tree.add(left: top)
    let loop = tree.add(left: below, Entry(key: key("b", layer: 2)))
    let bytes = tree.blocks[loop] ?? []
    // Only a block under a name that is not its own can lie below itself.
    _ = tree.add(bytes, as: top)
    expect(
      [MSTProblem(kind: .cycle, node: top, key: nil)], in: tree, from: top,
      keys: [key("b", layer: 2)])
  }

  @Test func `a node that comes again is repeated, and not walked again`() throws {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("a")))
    let root = tree.add(left: leaf, Entry(key: key("b", layer: 1), right: leaf))
    let found = try inspect(try tree.car(data: root))
    #expect(found.treeProblems == [MSTProblem(kind: .repeatedNode, node: leaf, key: nil)])
    #expect(found.recordCount == 2)
    #expect(found.nodeCount == 2)
  }

  @Test func `a prefix shorter than it could be is not maximal`() {
    var tree = HandMadeTree()
    let keys = [key("a"), key("b")]
    let root = tree.add(Entry(key: keys[0]), Entry(key: keys[1], sharing: 1))
    expect(
      [MSTProblem(kind: .prefixNotMaximal, node: root, key: keys[1])], in: tree, from: root,
      keys: keys)
  }

  @Test func `a prefix longer than the key before ends the node`() {
    var tree = HandMadeTree()
    let keys = [key("a"), key("bbbbbbbbbbbb")]
    let root = tree.add(
      Entry(key: keys[0]), Entry(key: keys[1], sharing: keys[0].count + 1))
    expect(
      [MSTProblem(kind: .prefixNotMaximal, node: root, key: nil)], in: tree, from: root,
      keys: [keys[0]])
  }

  @Test func `a first key with a prefix has nothing to share it with`() {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("a")))
    let root = tree.add(left: leaf, Entry(key: key("b", layer: 1), sharing: 1))
    expect(
      [MSTProblem(kind: .prefixNotMaximal, node: root, key: nil)], in: tree, from: root,
      keys: [key("a")])
  }

  @Test func `keys out of order in a node end it`() {
    var tree = HandMadeTree()
    let root = tree.add(Entry(key: key("b")), Entry(key: key("a")), Entry(key: key("c")))
    expect(
      [MSTProblem(kind: .keysNotAscending, node: root, key: key("a"))], in: tree, from: root,
      keys: [key("b")])
  }

  @Test func `a key that occurs twice in a node ends it`() {
    var tree = HandMadeTree()
    let root = tree.add(Entry(key: key("b")), Entry(key: key("b")))
    expect(
      [MSTProblem(kind: .keysNotAscending, node: root, key: key("b"))], in: tree, from: root,
      keys: [key("b")])
  }

  @Test func `a subtree whose keys belong before it is left out`() {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("a")))
    let root = tree.add(
      Entry(key: key("b", layer: 1), right: leaf), Entry(key: key("c", layer: 1)))
    expect(
      [MSTProblem(kind: .keysNotAscending, node: leaf, key: key("a"))], in: tree, from: root,
      keys: [key("b", layer: 1), key("c", layer: 1)])
  }

  @Test func `a subtree whose keys belong behind its parent's cuts the parent short`() {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("z")))
    let root = tree.add(left: leaf, Entry(key: key("b", layer: 1)))
    expect(
      [MSTProblem(kind: .keysNotAscending, node: root, key: key("b", layer: 1))], in: tree,
      from: root, keys: [key("z")])
  }

  @Test func `a key of another layer than its node's is in the wrong one`() {
    var tree = HandMadeTree()
    let keys = [key("a"), key("b", layer: 1), key("c")]
    let root = tree.add(entries: keys.map { Entry(key: $0) })
    expect(
      [MSTProblem(kind: .wrongLayer, node: root, key: keys[1])], in: tree, from: root, keys: keys)
  }

  @Test func `a subtree that skips a layer is in the wrong one`() {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("a")))
    let root = tree.add(left: leaf, Entry(key: key("b", layer: 2)))
    expect(
      [MSTProblem(kind: .wrongLayer, node: leaf, key: key("a"))], in: tree, from: root,
      keys: [key("a"), key("b", layer: 2)])
  }

  @Test func `a subtree below the lowest layer is in the wrong one`() {
    var tree = HandMadeTree()
    let below = tree.add(Entry(key: key("a")))
    let root = tree.add(left: below, Entry(key: key("b")))
    expect(
      [MSTProblem(kind: .wrongLayer, node: below, key: key("a"))], in: tree, from: root,
      keys: [key("a"), key("b")])
  }

  @Test func `an empty leaf should not be there`() {
    var tree = HandMadeTree()
    let empty = tree.add()
    let root = tree.add(left: empty, Entry(key: key("b", layer: 1)))
    expect(
      [MSTProblem(kind: .emptyLeaf, node: empty, key: nil)], in: tree, from: root,
      keys: [key("b", layer: 1)])
  }

  @Test func `a root without keys above the rest is untrimmed`() {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("a")))
    let root = tree.add(left: leaf)
    expect(
      [MSTProblem(kind: .untrimmedTop, node: root, key: nil)], in: tree, from: root,
      keys: [key("a")])
  }

  @Test(arguments: [
    "../../x", "../x", "a/..", "./a", "a/.", "a/b\0", "\0/a", "noslash", "/a", "a/", "a/b/c",
    "a/b c", "a/\u{1b}[2J", "a/é", "a\\b/c",
  ])
  func `a key that is no record path is illegal, and given out`(_ text: String) {
    let key = Array(text.utf8)
    var tree = HandMadeTree()
    let root = tree.add(Entry(key: key))
    expect(
      [MSTProblem(kind: .illegalKey, node: root, key: key)], in: tree, from: root, keys: [key])
  }

  @Test func `an empty key is illegal`() {
    var tree = HandMadeTree()
    let root = tree.add(Entry(key: []))
    expect([MSTProblem(kind: .illegalKey, node: root, key: [])], in: tree, from: root, keys: [[]])
  }

  @Test func `a key of 1024 bytes is the longest`() {
    let longest = key("a") + [UInt8](repeating: 0x61, count: 1024 - key("a").count)
    var tree = HandMadeTree()
    let fine = tree.add(Entry(key: longest))
    expect([], in: tree, from: fine, keys: [longest])
    let tooLong = tree.add(Entry(key: longest + [0x61]))
    let walk = tree.walk(from: tooLong)
    #expect(walk.kinds == [.illegalKey])
    #expect(walk.problems.first?.node == tooLong)
  }

  @Test func `everything that is wrong is reported, not the first thing`() {
    var tree = HandMadeTree()
    let empty = tree.add()
    let odd = tree.add(.string("not a node"))
    let skipping = tree.add(Entry(key: key("e")))
    let root = tree.add(
      left: empty, Entry(key: key("b", layer: 2), right: odd),
      Entry(key: key("d", layer: 2), right: skipping),
      Entry(key: key("f", layer: 2), right: .example(1), sharing: 0),
      Entry(key: key("g", layer: 1)))
    let walk = tree.walk(from: root)
    #expect(
      walk.kinds == [
        .emptyLeaf, .malformedNode(MSTNode.Malformed(reason: nil, offset: 0)), .wrongLayer,
        .prefixNotMaximal, .wrongLayer,
      ])
    #expect(walk.problems.map(\.node) == [empty, odd, skipping, root, root])
    #expect(walk.missing == [.example(1)])
    #expect(walk.keys.count == 5)
  }

  @Test func `a problem says what, where and at which key, and prints no control characters`() {
    let node = CID.example()
    let problem = MSTProblem(
      kind: .illegalKey, node: node, key: Array("a/\u{1b}[2J\u{9b}é\n".utf8))
    #expect(problem.description.contains("\(node)"))
    #expect(problem.description.contains(#"a/\x1b[2J\xc2\x9b\xc3\xa9\x0a"#))
    let long = MSTProblem(kind: .wrongLayer, node: node, key: [UInt8](repeating: 0x61, count: 9999))
    #expect(long.description.utf8.count < 500)
  }
}
