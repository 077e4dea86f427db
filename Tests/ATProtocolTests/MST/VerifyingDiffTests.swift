import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A new tree that is verified by how it differs` {
  private typealias Entry = HandMadeTree.Entry

  private func compare(_ old: CID, _ new: CID, in blocks: [CID: [UInt8]]) throws -> Bool {
    do {
      try MSTDiff.compare(old: old, new: new, verifying: true) { cid, _ in
        blocks[cid]
      } each: { _ in
      }
      return true
    } catch let error as MSTDiffError where error.problem.kind != .missing {
      return false
    }
  }

  @Test func `is refused if and only if a walk through all of it finds something wrong`() throws {
    var random = SeededGenerator()
    print("trees that are verified by their differences: \(random)")
    var (soundCount, wrongCount) = (0, 0)
    for _ in 0..<3000 {
      let numbers = Set(
        (0..<Int.random(in: 1...300, using: &random)).map { _ in
          Int.random(in: 10_000_000..<10_002_000, using: &random)
        })
      var tree = HandMadeTree()
      var builder = MSTBuilder()
      var nodes: [CID] = []
      for number in numbers.sorted() {
        builder.append(key: Array("t/\(number)".utf8), value: .example(number)) { block in
          nodes.append(tree.add(block.bytes))
        }
      }
      let old = builder.finish { nodes.append(tree.add($0.bytes)) }
      let new = try tree.withOneNodeChanged(old, nodes, &random)
      let isSound = tree.walk(from: new).problemCount == 0
      let isTaken = try compare(old, new, in: tree.blocks)
      #expect(
        isTaken == isSound, "\(tree.walk(from: new).problems.first.map { "\($0)" } ?? "sound")")
      if isSound { soundCount += 1 } else { wrongCount += 1 }
    }
    #expect(soundCount > 300)
    #expect(wrongCount > 300)
  }

  @Test func `is a part of the old one only if that has keys of its own`() throws {
    var tree = HandMadeTree()
    let leaf = tree.add(Entry(key: key("c")))
    let between = tree.add(left: leaf)
    let old = tree.add(left: between, Entry(key: key("f", layer: 2)))
    #expect(tree.walk(from: old).problemCount == 0)
    #expect(try compare(old, leaf, in: tree.blocks))
    #expect(try !compare(old, between, in: tree.blocks))
    #expect(try compare(old, old, in: tree.blocks))
  }
}
