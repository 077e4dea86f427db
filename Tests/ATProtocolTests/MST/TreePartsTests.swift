import ATProtocol
import IPLD
internal import Repository
import TestSupport
import Testing

@Suite struct `A large repository that several cores inspect` {
  /// A repository with a bit of everything: records under two keys, blobs, floats, bytes that are
  /// not a record.
  private struct Repository {
    var tree = HandMadeTree()
    var root = CID.example()
    var nodes: [CID] = []
    var records: [CID] = []

    init(recordCount: Int, _ random: inout SeededGenerator) throws {
      var builder = MSTBuilder()
      for number in 0..<recordCount {
        let record: CID
        switch Int.random(in: 0..<40, using: &random) {
        case 0: record = records.randomElement(using: &random) ?? tree.add(.map([:]))
        case 1: record = tree.add([0xa1, 0x61, 0x66, 0xfb] + [UInt8](repeating: 1, count: 8))
        case 2: record = tree.add(Array("no record \(number)".utf8))
        case 3...8:
          let size = IPLDValue.integer(Int128(number))
          let blob = CID.example(Int.random(in: 0..<600, using: &random), codec: .raw)
          record = tree.add(
            .map([
              "image": .map([
                "$type": .string("blob"), "ref": .link(blob),
                "mimeType": .string(["image/png", "image/jpeg"][number % 2]), "size": size,
              ])
            ]))
        default: record = tree.add(.map(["n": .integer(Int128(number))]))
        }
        records.append(record)
        let name = String(10_000_000 + number)
        builder.append(
          key: Array("collection.\(name.prefix(5).suffix(2))/\(name)".utf8), value: record
        ) { block in nodes.append(tree.add(block.bytes)) }
      }
      root = builder.finish { nodes.append(tree.add($0.bytes)) }
    }
  }

  /// All that an inspection says, as text.
  private func describe(_ found: RepositoryInspection) -> [String] {
    var lines = [
      "\(found.nodeCount) \(found.treeDepth) \(String(describing: found.rootLayer))",
      "\(found.treeProblemCount) \(found.treeProblems)", "\(found.missingNodes)",
      "\(found.recordCount) \(found.distinctRecordCount) \(found.missingRecordCount)",
      "\(found.recordsByCollection.sorted { $0.key < $1.key })", "\(found.missingRecords)",
      "\(found.recordWarningCount) \(found.recordWarnings)",
      "\(found.unreadable) \(found.nonCanonicalRecordCount) \(found.floatRecordCount)",
      "\(found.unreachableBlockCount) \(found.sectionCount) \(found.distinctBlockCount)",
      "\(found.blobs.typedReferenceCount) \(found.blobs.legacyReferenceCount)",
      "\(found.mismatchedBlocks) \(found.codecCounts.sorted { $0.key.rawValue < $1.key.rawValue })",
    ]
    lines += found.blobs.entries.map { "\($0)" }
    return lines
  }

  private func expectSame(
    _ tree: HandMadeTree, _ root: CID, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RepositoryInspection {
    let car = try tree.car(data: root)
    var visitCount = 0
    let alone = try inspect(car) { _ in visitCount += 1 }
    for workers in [1, 2, 5] {
      let together = try RepositoryInspection(car: car, workers: workers)
      #expect(
        describe(together) == describe(alone), "\(workers) workers", sourceLocation: sourceLocation
      )
    }
    #expect(visitCount == alone.recordCount, sourceLocation: sourceLocation)
    return alone
  }

  @Test func `is found to be what one core finds`() throws {
    var random = SeededGenerator()
    print("a large repository: \(random)")
    let made = try Repository(recordCount: 12_000, &random)
    let found = try expectSame(made.tree, made.root)
    #expect(found.isWellFormed)
    #expect(found.recordCount == 12_000)
    #expect(found.distinctRecordCount < 12_000)
    #expect(found.treeDepth > 5)
    #expect(found.blobs.entries.count > 300)
    #expect(found.recordWarningCount > 300)
  }

  @Test func `is found to be what one core finds, with blocks missing`() throws {
    var random = SeededGenerator()
    print("a large repository with blocks missing: \(random)")
    let made = try Repository(recordCount: 12_000, &random)
    var tree = made.tree
    for _ in 0..<20 { tree.remove(try #require(made.records.randomElement(using: &random))) }
    #expect(try expectSame(tree, made.root).missingRecordCount >= 20)
    tree.remove(try #require(made.nodes.randomElement(using: &random)))
    #expect(try expectSame(tree, made.root).missingNodes.count == 1)
  }

  @Test func `is found to be what one core finds, with a node changed`() throws {
    var random = SeededGenerator()
    print("a large repository with a node changed: \(random)")
    let made = try Repository(recordCount: 12_000, &random)
    var wrongCount = 0
    for _ in 0..<40 {
      var tree = made.tree
      let root = try tree.withOneNodeChanged(made.root, made.nodes, &random)
      if try expectSame(tree, root).treeProblemCount > 0 { wrongCount += 1 }
    }
    #expect(wrongCount > 5)
  }

  @Test func `scans one record for many keys no oftener than one core does`() throws {
    var tree = HandMadeTree()
    // One record with a blob, larger than all else together, under every tenth key.
    let large = tree.add(
      .map([
        "text": .string(String(repeating: "x", count: 2_000_000)),
        "image": .map([
          "$type": .string("blob"), "ref": .link(.example(codec: .raw)),
          "mimeType": .string("image/png"), "size": .integer(1),
        ]),
      ]))
    var builder = MSTBuilder()
    for number in 0..<9000 {
      let value = number % 10 == 0 ? large : tree.add(.map(["n": .integer(Int128(number))]))
      builder.append(key: Array("t/\(10_000 + number)".utf8), value: value) {
        _ = tree.add($0.bytes)
      }
    }
    let root = builder.finish { _ = tree.add($0.bytes) }
    let found = try expectSame(tree, root)
    #expect(found.blobs.typedReferenceCount < 10)
  }
}
