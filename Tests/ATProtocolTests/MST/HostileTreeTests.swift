import ATProtocol
import IPLD
import Repository
import Testing

/// Trees that are made to cost more than their bytes: each walk has to end in a time in proportion
/// to them.
@Suite(.timeLimit(.minutes(15))) struct `A hostile tree` {
  private typealias Entry = HandMadeTree.Entry

  @Test func `whose one node is linked to a great many times is walked once`() throws {
    var tree = HandMadeTree()
    let leaf = tree.add(entries: (0..<1000).map { Entry(key: Array("t/a\(10000 + $0)".utf8)) })
    let entries = (0..<50_000).map { Entry(key: Array("t/b\(1_000_000 + $0)".utf8), right: leaf) }
    let root = tree.add(left: leaf, entries: entries)
    let found = try inspect(try tree.car(data: root))
    #expect(found.nodeCount == 2)
    #expect(found.recordCount == 51_000)
    #expect(found.treeProblemCount >= 50_000)
    #expect(found.treeProblems.count == MSTWalker.maximumProblems)
  }

  @Test func `whose every node is linked to twice is walked without repeated keys`() {
    var tree = HandMadeTree()
    var node = tree.add(Entry(key: key("a")))
    // 2^60 paths lead to the lowest node.
    for level in 0..<60 {
      let key = Array("t/b\(level + 100)".utf8)
      node = tree.add(left: node, Entry(key: key, right: node))
    }
    let walk = tree.walk(from: node)
    #expect(walk.leaves.count == 61)
    #expect(walk.keys == walk.keys.sorted { $0.lexicographicallyPrecedes($1) })
    #expect(walk.enteredCount < 10_000)
    #expect(walk.kinds.contains(.keysNotAscending))
  }

  @Test func `of keys too long whose every node is linked to twice ends soon`() {
    var tree = HandMadeTree()
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: MSTWalker.maximumKeyLength)
    var node = tree.add(Entry(key: key("z") + long))
    for level in 0..<12 {
      node = tree.add(left: node, Entry(key: Array("t/b\(level + 100)".utf8) + long, right: node))
    }
    let walk = tree.walk(from: node)
    #expect(walk.leaves.isEmpty)
    #expect(walk.enteredCount < 1000)
    #expect(walk.kinds.contains(.illegalKey))
  }

  @Test func `whose record is linked to a great many times is searched in proportion`() throws {
    var tree = HandMadeTree()
    let text = IPLDValue.string(String(repeating: "a", count: 1_000_000))
    let blob: IPLDValue = .map([
      "$type": .string("blob"), "ref": .link(.example(codec: .raw)), "size": .integer(1),
      "mimeType": .string("image/png"),
    ])
    let record = tree.add(
      .map(["text": .array(Array(repeating: .integer(1), count: 100_000) + [text]), "blob": blob]))
    let entries = (0..<20_000).map {
      Entry(key: Array("t/b\(1_000_000 + $0)".utf8), value: record)
    }
    let root = tree.add(entries: entries)
    let found = try inspect(try tree.car(data: root))
    #expect(found.recordCount == 20_000)
    #expect(found.distinctRecordCount == 1)
    #expect(found.blobs.entries.count == 1)
  }

  @Test func `of nodes without keys one below the other ends where layers end`() {
    var tree = HandMadeTree()
    var node = tree.add(Entry(key: key("a")))
    for _ in 0..<10_000 { node = tree.add(left: node) }
    let walk = tree.walk(from: node)
    #expect(walk.kinds.first == .untrimmedTop)
    #expect(walk.kinds.contains(.tooDeep))
    #expect(walk.depth <= MSTLayer.maximum + 2)
    #expect(walk.enteredCount <= MSTLayer.maximum + 3)
  }

  @Test func `of nodes with one key each goes no deeper than layers do`() {
    var tree = HandMadeTree()
    var node = tree.add(Entry(key: key("z")))
    for level in 0..<1000 {
      node = tree.add(Entry(key: Array("t/a\(9999 - level)".utf8), right: node))
    }
    let walk = tree.walk(from: node)
    #expect(walk.kinds.contains(.wrongLayer))
    #expect(walk.kinds.filter { $0 == .tooDeep }.count <= 1)
    #expect(walk.depth <= MSTLayer.maximum + 2)
    #expect(walk.leaves.count <= MSTLayer.maximum + 2)
  }

  @Test func `whose keys all repeat one long prefix is walked in proportion`() {
    var tree = HandMadeTree()
    let length = 2_000_000
    let items = (0..<20_000).map { number -> IPLDValue in
      let start = number == 0 ? Array("t/".utf8) + [UInt8](repeating: 0x61, count: length - 2) : []
      return .map([
        "k": .bytes(start + Array("\(100_000 + number)".utf8)),
        "p": .integer(number == 0 ? 0 : Int128(length)), "t": .null, "v": .link(.example()),
      ])
    }
    let root = tree.add(.map(["e": .array(items), "l": .null]))
    let walk = tree.walk(from: root)
    #expect(walk.kinds.contains(.illegalKey))
    #expect(walk.problemCount >= items.count)
    #expect(walk.problems.allSatisfy { ($0.key?.count ?? 0) <= MSTWalker.maximumKeyLength + 1 })
  }

  @Test func `with many empty leaves keeps the first problems and counts the rest`() {
    var tree = HandMadeTree()
    let empty = tree.add()
    let entries = (0..<5000).map { Entry(key: Array("t/b\(100_000 + $0)".utf8), right: empty) }
    let root = tree.add(entries: entries)
    let walk = tree.walk(from: root)
    #expect(walk.problems.count == MSTWalker.maximumProblems)
    #expect(walk.problemCount >= 5000)
  }

  @Test func `whose blocks link in a circle through all of them ends`() throws {
    var tree = HandMadeTree()
    let names = (0..<50).map { CID.example($0) }
    for (index, name) in names.enumerated() {
      let next = names[(index + 1) % names.count]
      var maker = HandMadeTree()
      let made = maker.add(left: next, Entry(key: Array("t/b\(index + 100)".utf8), right: next))
      _ = tree.add(maker.blocks[made] ?? [], as: name)
    }
    let walk = tree.walk(from: names[0])
    #expect(walk.kinds.contains(.cycle))
    #expect(walk.leaves.count <= names.count)

    let found = try inspect(try tree.car(data: names[0]))
    #expect(found.mismatchedBlocks.count == names.count)
    #expect(found.nodeCount == names.count)
    #expect(!found.isWellFormed)
  }
}
