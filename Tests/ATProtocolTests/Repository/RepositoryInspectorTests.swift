import ATProtocol
import IPLD
internal import Repository
internal import TestSupport
import Testing

@Suite struct `Inspecting a repository` {
  private typealias Entry = HandMadeTree.Entry

  /// A tree of these records, by their names in `t/`, all of them in the lowest layer.
  private func tree(_ records: [(String, CID)], in tree: inout HandMadeTree) -> CID {
    tree.add(entries: records.map { Entry(key: key($0.0), value: $0.1) })
  }

  private func name(_ start: String) -> String { String(decoding: key(start), as: UTF8.self) }

  private func blob(_ cid: CID) -> IPLDValue {
    .map([
      "$type": .string("blob"), "ref": .link(cid), "mimeType": .string("image/png"),
      "size": .integer(10),
    ])
  }

  @Test func `that is whole and well-formed finds nothing wrong`() throws {
    var made = HandMadeTree()
    let record = made.add(.map(["$type": .string("t")]))
    let root = tree([("a", record), ("b", record)], in: &made)
    var visited: [RepositoryInspection.Record] = []
    let bytes = try made.car(data: root)
    let found = try inspect(bytes) { visited.append($0) }
    #expect(found.isWellFormed)
    #expect(found.isComplete)
    #expect(found.recordCount == 2)
    #expect(found.distinctRecordCount == 1)
    #expect(found.recordsByCollection == ["t": 2])
    #expect(found.unreachableBlockCount == 0)
    #expect(found.rootIsFirstBlock)
    #expect(found.recordWarnings.isEmpty)
    #expect(visited.map(\.key) == [key("a"), key("b")])
    #expect(visited.map(\.cid) == [record, record])
    for visit in visited { #expect(visit.number != nil) }
  }

  @Test func `names what is missing, nodes and records`() throws {
    var made = HandMadeTree()
    let record = made.add(.map([:]))
    let root = made.add(
      left: .example(1), Entry(key: key("a", layer: 1), value: .example(2), right: .example(1)),
      Entry(key: key("b", layer: 1), value: record, right: .example(3)),
      Entry(key: key("c", layer: 1), value: .example(2)))
    let found = try inspect(try made.car(data: root))
    #expect(found.missingNodes == [.example(1), .example(3)])
    #expect(
      found.missingRecords == ["a", "c"].map { String(decoding: key($0, layer: 1), as: UTF8.self) })
    #expect(found.missingRecordCount == 2)
    #expect(found.recordCount == 3)
    #expect(found.distinctRecordCount == 2)
    #expect(!found.isComplete)
    #expect(found.isWellFormed)
  }

  @Test func `lists up to a limit what is missing, and counts the rest`() throws {
    var made = HandMadeTree()
    let count = RepositoryInspection.maximumListed + 5
    let entries = (0..<count).map {
      Entry(key: Array("t/a\(10_000 + $0)".utf8), value: .example($0))
    }
    let root = made.add(entries: entries)
    let found = try inspect(try made.car(data: root))
    #expect(found.missingRecordCount == count)
    #expect(found.missingRecords.count == RepositoryInspection.maximumListed)
  }

  @Test func `reports everything that is wrong at once`() throws {
    var made = HandMadeTree()
    let float = made.add(.map(["a": .float(1.5), "blob": blob(.example(1, codec: .raw))]))
    let text = made.add(.string("not a map"))
    let odd = made.add([0x1c])
    let long = made.add([0xa1, 0x61, 0x61, 0x18, 0x01])
    let old = made.add(.map(["cid": .string("nonsense"), "mimeType": .string("image/png")]))
    let fine = made.add(.map(["blob": blob(.example(2, codec: .raw))]))
    _ = made.add([1, 2, 3], as: .example(3))
    _ = made.add(.map(["nobody": .string("links here")]))
    let root = made.add(
      left: .example(4),
      Entry(key: key("a"), value: float), Entry(key: key("b"), value: text),
      Entry(key: key("c"), value: odd), Entry(key: key("d"), value: long),
      Entry(key: key("e"), value: old, sharing: 0), Entry(key: key("f"), value: .example(5)),
      Entry(key: key("g"), value: fine))
    var bytes = try made.car(data: root)
    bytes += [9, 1, 1]
    let found = try inspect(bytes)

    #expect(found.carError?.reason == .truncatedSection)
    #expect(found.carError?.offset == bytes.count - 3)
    #expect(found.mismatchedBlocks == [.example(3)])
    #expect(found.commit != nil)
    #expect(found.missingNodes == [.example(4)])
    #expect(found.treeProblems.map(\.kind) == [.prefixNotMaximal])
    #expect(found.recordCount == 7)
    #expect(found.missingRecords == [name("f")])
    #expect(found.recordWarnings.map(\.record) == ["a", "b", "c", "d", "e"].map(name))
    #expect(found.recordWarningCount == 5)
    #expect(found.floatRecordCount == 1)
    #expect(found.unreadable.count == 2)
    #expect(found.nonCanonicalRecordCount == 1)
    #expect(found.blobs.entries.map(\.cid) == [.example(1, codec: .raw), .example(2, codec: .raw)])
    #expect(found.blobs.entries.map(\.firstRecord) == [name("a"), name("g")])
    #expect(found.unreachableBlockCount == 2)
    #expect(!found.isWellFormed)
    #expect(!found.isComplete)
  }

  @Test func `counts references each time and blobs once`() throws {
    var made = HandMadeTree()
    let cid = CID.example(1, codec: .raw)
    let old: IPLDValue = .map(["cid": .string("\(cid)"), "mimeType": .string("image/webp")])
    let first = made.add(.map(["a": old]))
    let second = made.add(.map(["a": blob(cid), "b": blob(cid)]))
    let root = tree([("a", first), ("b", second), ("c", second)], in: &made)
    let blobs = try inspect(try made.car(data: root)).blobs
    #expect(blobs.typedReferenceCount == 4)
    #expect(blobs.legacyReferenceCount == 1)
    #expect(blobs.entries.count == 1)
    #expect(blobs.contains(cid))
    #expect(!blobs.contains(.example(2, codec: .raw)))
    let entry = try #require(blobs[cid])
    #expect(entry.mimeType == "image/webp")
    #expect(entry.size == 10)
    #expect(entry.isTyped)
    #expect(entry.isLegacy)
    #expect(entry.firstRecord == name("a"))
  }

  @Test func `keeps few of the warnings of one record and counts all`() throws {
    var made = HandMadeTree()
    let old: IPLDValue = .map(["cid": .string(""), "mimeType": .string("")])
    let record = made.add(.map(["a": .array(Array(repeating: old, count: 3000))]))
    let root = tree([("a", record)], in: &made)
    let found = try inspect(try made.car(data: root))
    #expect(found.recordWarningCount == 3000)
    #expect(found.recordWarnings.count == RepositoryInspection.maximumListed)
  }

  @Test func `without a root, a commit or a sound commit says why`() throws {
    func car(_ roots: [CID], _ blocks: [[UInt8]]) -> [UInt8] {
      var bytes: [UInt8] = []
      CARWriter.appendHeader(roots: roots, to: &bytes)
      for block in blocks { CARWriter.appendSection(.naming(block), block.span, to: &bytes) }
      return bytes
    }
    #expect(try inspect(car([], [])).commitError == .noRoot)
    #expect(try inspect(car([.example()], [])).commitError == .commitMissing(.example()))
    let bad: [UInt8] = [0xa0]
    let found = try inspect(car([.naming(bad)], [bad, bad]))
    #expect(found.commitError == .notACommit(fields: []))
    #expect(found.sectionCount == 2)
    #expect(found.distinctBlockCount == 1)
    #expect(!found.isWellFormed)
    #expect(!found.isComplete)
  }

  @Test func `notices a repeated block that is another the second time`() throws {
    var made = HandMadeTree()
    let record = made.add(.map([:]))
    let root = tree([("a", record)], in: &made)
    var bytes = try made.car(data: root)
    CARWriter.appendSection(record, [UInt8]([0xa1, 0x61, 0x61, 0xf6]).span, to: &bytes)
    let found = try inspect(bytes)
    #expect(found.mismatchedBlocks == [record])
    #expect(!found.isWellFormed)
  }

  @Test func `walks in spite of a block that is not what its CID says`() throws {
    var made = HandMadeTree()
    let record = made.add(.map([:]))
    let root = tree([("a", record)], in: &made)
    let bytes = made.blocks[root] ?? []
    _ = made.add(bytes, as: .example(9))
    let found = try inspect(try made.car(data: .example(9)))
    #expect(found.mismatchedBlocks == [.example(9)])
    #expect(found.recordCount == 1)
    #expect(!found.isWellFormed)
  }

  @Test func `of bytes that do not begin as a CAR is refused`() {
    for bytes: [UInt8] in [[], [0], [1, 0xa0], Array("hello, this is not a CAR".utf8)] {
      #expect(throws: CARError.self) { try inspect(bytes) }
    }
  }

  @Test func `of a CAR that is cut short anywhere never finds it sound`() throws {
    var made = HandMadeTree()
    let record = made.add(.map(["a": blob(.example(1, codec: .raw))]))
    let root = tree([("a", record), ("b", record)], in: &made)
    let bytes = try made.car(data: root)
    #expect(try inspect(bytes).isComplete)
    for length in 0..<bytes.count {
      guard let found = try? inspect(Array(bytes[..<length])) else { continue }
      #expect(!(found.isWellFormed && found.isComplete))
    }
  }
}
