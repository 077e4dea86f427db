import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `Building a tree` {
  private typealias Leaf = (key: [UInt8], value: CID)

  private static let letters = Array("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789.-_:~".utf8)

  /// Up to `most` records with keys that share beginnings now and then.
  private func randomLeaves(upTo most: Int, _ random: inout SeededGenerator) -> [Leaf] {
    var leaves: [[UInt8]: CID] = [:]
    var key = Array("a.b.c/x".utf8)
    for number in 0..<Int.random(in: 0...most, using: &random) {
      let slash = key.firstIndex(of: UInt8(ascii: "/")) ?? 0
      key.removeLast(Int.random(in: 0..<(key.count - slash), using: &random))
      if Int.random(in: 0..<10, using: &random) == 0 {
        let name = Self.letters.randomElement(using: &random) ?? 0x61
        key = [UInt8(ascii: "a"), name, UInt8(ascii: "/")]
      }
      for _ in 0..<Int.random(in: 1...20, using: &random) {
        key.append(Self.letters.randomElement(using: &random) ?? 0x61)
      }
      if key.count > 200 { key.removeLast(key.count - 20) }
      leaves[key] = .example(number % 100)
    }
    return leaves.map { ($0, $1) }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  @Test func `random keys are walked again, changed and restored`() {
    var random = SeededGenerator()
    let seed = random.seed
    print("Building a tree: \(random)")
    for _ in 0..<60 {
      let leaves = randomLeaves(upTo: 400, &random)
      let (root, nodes) = build(leaves)
      let walk = Walk(from: root, in: nodes)
      #expect(walk.problems.filter { $0.kind != .illegalKey } == [], "seed \(seed)")
      #expect(walk.missing == [], "seed \(seed)")
      #expect(walk.keys == leaves.map(\.key), "seed \(seed)")
      #expect(walk.leaves.map(\.value) == leaves.map(\.value), "seed \(seed)")
      #expect(walk.nodes == Set(nodes.keys), "seed \(seed)")
      #expect(
        walk.rootLayer == leaves.map { MSTLayer.layer(of: $0.key.span) }.max(), "seed \(seed)")
      #expect(walk.rebuilt().root == root, "seed \(seed)")
      for (cid, bytes) in nodes { #expect(cid == .naming(bytes)) }

      guard let victim = leaves.indices.randomElement(using: &random) else { continue }
      var fewer = leaves
      let removed = fewer.remove(at: victim)
      #expect(build(fewer).root != root, "seed \(seed)")
      fewer.insert(removed, at: victim)
      #expect(build(fewer).root == root, "seed \(seed)")
      var changed = leaves
      changed[victim].value = .example(1000)
      #expect(build(changed).root != root, "seed \(seed)")
      let between = leaves[victim].key + [UInt8(ascii: "-")]
      if !leaves.contains(where: { $0.key == between }) {
        var more = leaves
        more.insert((between, .example()), at: victim + 1)
        #expect(build(more).root != root, "seed \(seed)")
      }
    }
  }

  @Test func `nodes leave as soon as nothing can change them, children first`() {
    let leaves = (0..<2000).map { (key: Array("a.b.c/\(10_000 + $0)".utf8), value: CID.example()) }
    var builder = MSTBuilder()
    var emitted: [CID: [UInt8]] = [:]
    var early = 0
    func take(_ block: Block) {
      #expect(emitted[block.cid] == nil)
      let node = try? MSTNode(block.bytes.span)
      for link in (node?.entries ?? []).compactMap(\.right) + [node?.left].compactMap({ $0 }) {
        #expect(emitted[link] != nil)
      }
      emitted[block.cid] = block.bytes
    }
    for leaf in leaves { builder.append(key: leaf.key, value: leaf.value, emit: take) }
    early = emitted.count
    let root = builder.finish(emit: take)
    #expect(emitted[root] != nil)
    #expect(emitted.count - early <= 8)
    #expect(emitted == build(leaves).nodes)
  }

  @Test func `a builder that is copied builds on from where it was`() {
    let leaves = (0..<300).map { (key: Array("a.b.c/\(10_000 + $0)".utf8), value: CID.example()) }
    var builder = MSTBuilder()
    for leaf in leaves[..<150] { builder.append(key: leaf.key, value: leaf.value) }
    var other = builder
    for leaf in leaves[150...] { builder.append(key: leaf.key, value: leaf.value) }
    for leaf in leaves[151...] { other.append(key: leaf.key, value: leaf.value) }
    let all = builder.finish()
    let withoutOne = other.finish()
    #expect(all == build(leaves).root)
    #expect(all != withoutOne)
  }

  @Test func `what the caller throws comes out`() {
    struct Full: Error {}
    var builder = MSTBuilder()
    #expect(throws: Full.self) {
      for number in 0..<100 {
        try builder.append(key: Array("a/\(1000 + number)".utf8), value: .example()) { _ in
          throw Full()
        }
      }
    }
    #expect(throws: Full.self) { _ = try MSTBuilder().finish { _ in throw Full() } }
  }

  @Test func `keys that do not ascend stop the program`() async {
    await #expect(processExitsWith: .failure) {
      var builder = MSTBuilder()
      builder.append(key: [2], value: .example())
      builder.append(key: [1], value: .example())
    }
    await #expect(processExitsWith: .failure) {
      var builder = MSTBuilder()
      builder.append(key: [1], value: .example())
      builder.append(key: [1], value: .example())
    }
  }
}
