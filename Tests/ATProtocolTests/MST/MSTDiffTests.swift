import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `The difference of two trees` {
  private typealias Leaves = [[UInt8]: CID]

  private func tree(_ leaves: Leaves) -> Tree {
    build(
      leaves.map { (key: $0, value: $1) }.sorted { $0.key.lexicographicallyPrecedes($1.key) })
  }

  /// Compares two trees in both directions, and with the difference found by walking all of both.
  private func check(_ old: Tree, _ new: Tree, _ comment: Comment) throws {
    for (from, to) in [(old, new), (new, old)] {
      let found = try Difference(from: from, to: to)
      let naive = NaiveDifference(from: from, to: to)
      #expect(Set(found.created) == naive.created, comment)
      #expect(Set(found.deleted) == naive.deleted, comment)
      #expect(found.created.count == naive.created.count, comment)
      #expect(found.deleted.count == naive.deleted.count, comment)
      #expect(found.records == naive.records, comment)
    }
  }

  /// A key of its own for each number; numbers in order are keys in order.
  private func numbered(_ number: Int) -> [UInt8] { Array("t/\(10_000_000 + number)".utf8) }

  /// Changes some of the records: half of them new, a quarter gone, a quarter others.
  private func change(
    _ leaves: Leaves, times: Int, below limit: Int, _ random: inout SeededGenerator
  ) -> Leaves {
    var changed = leaves
    for _ in 0..<times {
      let key = numbered(Int.random(in: 0..<limit, using: &random))
      switch Int.random(in: 0..<4, using: &random) {
      case 0: if let victim = changed.keys.randomElement(using: &random) { changed[victim] = nil }
      case 1:
        if let victim = changed.keys.randomElement(using: &random) {
          changed[victim] = .example(Int.random(in: 1000..<2000, using: &random))
        }
      default: changed[key] = .example(Int.random(in: 0..<1000, using: &random))
      }
    }
    return changed
  }

  @Test func `of random trees is what walking all of both finds`() throws {
    var random = SeededGenerator()
    print("The difference of two trees: \(random)")
    let start = "\(random)"
    for round in 0..<400 {
      let size = [0, 1, 3, 20, 100, 600][round % 6]
      let limit = max(4, size * Int.random(in: 1...4, using: &random))
      var leaves: Leaves = [:]
      for _ in 0..<size {
        leaves[numbered(Int.random(in: 0..<limit, using: &random))] = .example(
          Int.random(in: 0..<1000, using: &random))
      }
      let times = [1, 2, 5, 50, size + 1][round % 5]
      let changed = change(leaves, times: times, below: limit, &random)
      try check(tree(leaves), tree(changed), "\(start), round \(round)")
    }
  }

  @Test func `of stretches cut out of one tree is what walking all of both finds`() throws {
    var random = SeededGenerator()
    print("Stretches of a tree: \(random)")
    let start = "\(random)"
    // Whole subtrees come and go, so the rest is split differently and sits in other places.
    for round in 0..<200 {
      var (old, new): (Leaves, Leaves) = ([:], [:])
      for number in 0..<500 { old[numbered(number)] = .example(number % 10) }
      new = old
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let from = Int.random(in: 0..<500, using: &random)
        for number in from..<min(500, from + Int.random(in: 1...200, using: &random)) {
          if Bool.random(using: &random) {
            old[numbered(number)] = nil
          } else {
            new[numbered(number)] = nil
          }
        }
        for number in from..<min(500, from + Int.random(in: 1...200, using: &random)) {
          new[numbered(number)] = nil
        }
      }
      try check(tree(old), tree(new), "\(start), round \(round)")
    }
  }

  @Test func `of a tree and itself takes nothing to know`() throws {
    let some = tree([numbered(1): .example(), numbered(2): .example()])
    for tree in [tree([:]), some] {
      let found = try Difference(from: tree, to: (tree.root, [:]))
      #expect(found.created == [])
      #expect(found.deleted == [])
      #expect(found.records == [])
      #expect(found.loaded == [])
    }
  }

  @Test func `of a tree and the empty one is all of it, the empty root included`() throws {
    let empty = tree([:])
    let full = tree(Dictionary(uniqueKeysWithValues: (0..<100).map { (numbered($0), .example()) }))
    let found = try Difference(from: empty, to: full)
    #expect(found.deleted == [empty.root])
    #expect(Set(found.created) == Set(full.nodes.keys))
    #expect(found.records.map(\.key) == (0..<100).map(numbered))
    #expect(found.records.allSatisfy { $0.old == nil && $0.new == .example() })
    try check(empty, full, "the empty tree")
  }

  @Test func `knows a whole tree again that has come to lie deeper`() throws {
    var leaves: Leaves = [:]
    for number in 0..<40 { leaves[key("b\(100 + number)", layer: number % 3)] = .example() }
    let old = tree(leaves)
    for layer in 3...5 {
      for start in ["a", "z"] {
        var more = leaves
        more[key(start, layer: layer)] = .example()
        let new = tree(more)
        let found = try Difference(from: old, to: new)
        #expect(found.created.count == layer - 2)
        #expect(found.deleted == [])
        #expect(found.records.count == 1)
        try check(old, new, "layer \(layer), \(start)")
      }
      // In the middle it cuts what it lies between.
      var cut = leaves
      cut[key("b120-", layer: layer)] = .example()
      try check(old, tree(cut), "layer \(layer)")
    }
  }

  @Test func `gives out the nodes that a record lies in before it`() throws {
    let old = tree([:])
    let new = tree(Dictionary(uniqueKeysWithValues: (0..<300).map { (numbered($0), .example($0)) }))
    var given: Set<CID> = []
    try MSTDiff.compare(old: old.root, new: new.root) { cid, side in
      side == .old ? old.nodes[cid] : new.nodes[cid]
    } each: { change in
      switch change {
      case .createdNode(let cid): given.insert(cid)
      case .deletedNode(let cid): #expect(cid == old.root)
      case .record(let record):
        let holder = new.nodes.first { node in
          (try? MSTNode(node.value.span))?.entries.contains { $0.value == record.new } == true
        }
        #expect(holder.map { given.contains($0.key) } == true)
      }
    }
  }

  @Test func `loads no more of a large tree than has changed`() throws {
    var leaves: Leaves = [:]
    for number in 0..<20_000 { leaves[numbered(number * 10)] = .example(number) }
    let old = tree(leaves)
    let levels = Walk(from: old.root, in: old.nodes).depth
    #expect(levels >= 6)
    var random = SeededGenerator()
    print("Changes of a large tree: \(random)")
    for count in [1, 1, 1, 10, 10, 100] {
      let new = tree(change(leaves, times: count, below: 200_000, &random))
      for (from, to) in [(old, new), (new, old)] {
        let found = try Difference(from: from, to: to)
        let naive = NaiveDifference(from: from, to: to)
        #expect(Set(found.created) == naive.created, "\(random)")
        #expect(Set(found.deleted) == naive.deleted, "\(random)")
        #expect(found.records == naive.records, "\(random)")
        #expect(Set(found.loaded).count == found.loaded.count, "\(random)")
        #expect(found.loaded.count <= 4 * levels * count, "\(random)")
        #expect(found.loadedInVain.count <= levels + count / 4, "\(random)")
      }
    }
  }

  @Test func `names a node that is missing, the tree it is missing from, and where`() throws {
    let leaves = Dictionary(uniqueKeysWithValues: (0..<500).map { (numbered($0), CID.example()) })
    let old = tree([:])
    let whole = tree(leaves)
    for cid in whole.nodes.keys {
      var new = whole
      new.nodes[cid] = nil
      var last: [UInt8] = []
      let error = #expect(throws: MSTDiffError.self) {
        try MSTDiff.compare(old: old.root, new: new.root) { cid, side in
          side == .old ? old.nodes[cid] : new.nodes[cid]
        } each: {
          if case .record(let record) = $0 { last = record.key }
        }
      }
      let problem = MSTProblem(kind: .missing, node: cid, key: last.isEmpty ? nil : last)
      #expect(error == MSTDiffError(problem, .new))
      #expect(error?.description.contains("\(cid)") == true)
      // On the way back it is the old tree that lacks it.
      #expect(throws: MSTDiffError(problem, .old)) {
        try Difference(from: new, to: old)
      }
    }
    // What both have is not asked for, so it does not matter that it is missing.
    var changed = leaves
    changed[numbered(499)] = .example(1)
    var (from, to) = (whole, tree(changed))
    let needed = Set(try Difference(from: from, to: to).loaded)
    from.nodes = from.nodes.filter { needed.contains($0.key) }
    to.nodes = to.nodes.filter { needed.contains($0.key) }
    #expect(from.nodes.count < whole.nodes.count / 4)
    #expect(try Difference(from: from, to: to).records.map(\.key) == [numbered(499)])
  }

  @Test func `is refused for a tree that breaks a rule where it is read`() throws {
    typealias Entry = HandMadeTree.Entry
    let sound = tree([key("a"): .example(1), key("m", layer: 1): .example(1), key("z"): .example()])
    let (low, high) = (key("b"), key("n", layer: 1))
    func refuses(_ kind: MSTProblem.Kind, _ make: (inout HandMadeTree) -> CID) {
      var hand = HandMadeTree()
      let root = make(&hand)
      for side in [MSTDiff.Side.old, .new] {
        let bad = (root: root, nodes: hand.blocks)
        let error = #expect(throws: MSTDiffError.self) {
          try side == .old ? Difference(from: bad, to: sound) : Difference(from: sound, to: bad)
        }
        #expect(error?.side == side)
        #expect(error?.problem.kind == kind)
        #expect(error.map { $0.description.contains("\($0.problem.node)") } == true)
      }
    }
    refuses(.malformedNode(MSTNode.Malformed(reason: nil, offset: 0))) { $0.add([0xa0, 0, 0]) }
    refuses(.keysNotAscending) { $0.add(Entry(key: key("c")), Entry(key: key("b"))) }
    refuses(.wrongLayer) { $0.add(Entry(key: low), Entry(key: high)) }
    refuses(.illegalKey) { $0.add(Entry(key: Array("nothing".utf8))) }
    refuses(.prefixNotMaximal) {
      $0.add(Entry(key: key("b")), Entry(key: key("c"), sharing: 0))
    }
    refuses(.emptyLeaf) { tree in
      let empty = tree.add(.map(["e": .array([]), "l": .null]))
      return tree.add(left: empty, Entry(key: high))
    }
    refuses(.untrimmedTop) { tree in
      let leaf = tree.add(Entry(key: low))
      return tree.add(left: leaf)
    }
    refuses(.cycle) { tree in
      let name = CID.example(7)
      var maker = HandMadeTree()
      let made = maker.add(left: name, Entry(key: high))
      return tree.add(maker.blocks[made] ?? [], as: name)
    }
  }

  @Test func `of trees whose every node is linked to twice ends soon`() throws {
    typealias Entry = HandMadeTree.Entry
    func chain(_ name: String, over bottom: CID?) -> Tree {
      var hand = HandMadeTree()
      var node = bottom ?? hand.add(Entry(key: key("a")))
      for level in 1...60 {
        node = hand.add(
          left: node, Entry(key: key("\(name)\(level + 100)", layer: min(level, 5)), right: node))
      }
      return (node, hand.blocks)
    }
    var shared = HandMadeTree()
    let bottom = shared.add(Entry(key: key("a")))
    for (one, other) in [
      (chain("b", over: nil), chain("c", over: nil)),
      (chain("b", over: bottom), chain("c", over: bottom)), (chain("b", over: nil), tree([:])),
    ] {
      var loads = 0
      #expect(throws: MSTDiffError.self) {
        try MSTDiff.compare(old: one.root, new: other.root) { cid, side in
          loads += 1
          return side == .old ? one.nodes[cid] : other.nodes[cid]
        } each: { _ in
        }
      }
      #expect(loads < 1000)
    }
  }

  @Test func `survives an empty root that the other tree links to`() throws {
    typealias Entry = HandMadeTree.Entry
    let empty = tree([:])
    var hand = HandMadeTree()
    let root = hand.add(left: empty.root, Entry(key: key("n", layer: 1)))
    // A subtree that both have is not entered, not even to see that it should not be there.
    let found = try Difference(from: empty, to: (root, hand.blocks))
    #expect(found.created == [root])
    #expect(found.records.count == 1)
  }

  @Test func `ends with what the closures throw`() throws {
    struct Stop: Error {}
    let old = tree([:])
    let new = tree([numbered(1): .example()])
    #expect(throws: Stop.self) {
      try MSTDiff.compare(old: old.root, new: new.root) { _, _ in
        throw Stop()
      } each: { _ in
      }
    }
    #expect(throws: Stop.self) {
      try MSTDiff.compare(old: old.root, new: new.root) { cid, _ in
        old.nodes[cid] ?? new.nodes[cid]
      } each: { _ in
        throw Stop()
      }
    }
  }
}
