import ATProtocol
import Archive
import Extraction
internal import Files
import IPLD
internal import Repository
import Snapshots
import TestSupport
import Testing

@Suite struct `The difference of two snapshots` {
  /// What was found, and which snapshots were read as a whole for it.
  private struct Found {
    var lines: [String] = []
    let diff: SnapshotDiff
    /// The lengths of the CARs that were read as a whole.
    let wholeCARs: Set<UInt64>
    var readAll: Bool { !wholeCARs.isEmpty }

    init(_ old: TestRepository, _ new: TestRepository) throws {
      let (before, after) = (try Packed(car: try old.car()), try Packed(car: try new.car()))
      try self.init(before.snapshot, after.snapshot)
    }

    init(_ old: ArchivedSnapshot, _ new: ArchivedSnapshot) throws {
      var lines: [String] = []
      var wholeCARs: Set<UInt64> = []
      diff = try SnapshotDiff.compare(old, new) { change in
        let sign = change.old == nil ? "+" : change.new == nil ? "-" : "~"
        lines.append("\(sign) \(change.path)")
      } observer: {
        wholeCARs.insert($0.total)
      }
      self.lines = lines
      self.wholeCARs = wholeCARs
    }

    var added: [CID] { diff.addedBlobs.map(\.cid) }
    var gone: [CID] { diff.goneBlobs.map(\.cid) }
    var counts: [Int] { [diff.createdCount, diff.updatedCount, diff.deletedCount] }
  }

  private static let image = CID.blob(Array("an image".utf8))
  private static let other = CID.blob(Array("another image".utf8))

  /// Compares every record and every blob of two snapshots.
  private func check(_ old: TestRepository, _ new: TestRepository, _ comment: Comment) throws {
    let found = try Found(old, new)
    let keys = Set(old.records.keys).union(new.records.keys)
    let lines = keys.filter { old.records[$0] != new.records[$0] }
      .sorted { $0.lexicographicallyPrecedes($1) }
      .map { key in
        let sign = old.records[key] == nil ? "+" : new.records[key] == nil ? "-" : "~"
        return "\(sign) \(String(decoding: key, as: UTF8.self))"
      }
    #expect(found.lines == lines, comment)
    func blobs(_ repository: TestRepository) throws -> Set<String> {
      let car = try repository.car()
      let entries = try RepositoryInspection(car: car).blobs.entries
      return Set(entries.map { "\($0.cid)" })
    }
    let (before, after) = (try blobs(old), try blobs(new))
    #expect(found.added.map { "\($0)" } == after.subtracting(before).sorted(), comment)
    #expect(found.gone.map { "\($0)" } == before.subtracting(after).sorted(), comment)
    #expect(found.diff.gapCount == 0, comment)
  }

  @Test func `lists records in the order of their keys, and counts them`() throws {
    var (old, new) = (try TestRepository(posts: 50), try TestRepository(posts: 50))
    try old.add("a.b.c/gone", ["x": .integer(1)])
    try old.add("a.b.c/changed", ["x": .integer(1)])
    try new.add("a.b.c/changed", ["x": .integer(2)])
    try new.add("z.b.c/new", ["x": .integer(1)])
    let found = try Found(old, new)
    #expect(found.lines == ["~ a.b.c/changed", "- a.b.c/gone", "+ z.b.c/new"])
    #expect(found.counts == [1, 1, 1])
    #expect(!found.diff.isEmpty)
    #expect(found.diff.createdNodeCount > 0 && found.diff.deletedNodeCount > 0)
    #expect(!found.readAll)
    let back = try Found(new, old)
    #expect(back.lines == ["~ a.b.c/changed", "+ a.b.c/gone", "- z.b.c/new"])
  }

  @Test func `is empty where only the commit is another`() throws {
    let old = try TestRepository(posts: 5)
    var new = old
    new.rev = "3lscuqc52or3x"
    let found = try Found(old, new)
    #expect(found.diff.isEmpty)
    #expect(found.lines == [] && found.added == [] && found.gone == [])
    #expect(found.diff.createdNodeCount + found.diff.deletedNodeCount == 0)
  }

  @Test func `names the blobs that came with a record and went with one`() throws {
    var (old, new) = (try TestRepository(posts: 3), try TestRepository(posts: 3))
    try old.add("a.b.c/old", blob: Self.image, size: 7)
    try new.add("a.b.c/new", blob: Self.other, mimeType: "image/webp", size: 8)
    let found = try Found(old, new)
    #expect(found.added == [Self.other])
    #expect(found.gone == [Self.image])
    let (added, gone) = (
      try #require(found.diff.addedBlobs.first), try #require(found.diff.goneBlobs.first)
    )
    #expect(added.mimeType == "image/webp" && added.size == 8 && added.firstRecord == "a.b.c/new")
    #expect(gone.mimeType == "image/png" && gone.size == 7 && gone.firstRecord == "a.b.c/old")
    #expect(found.readAll)
  }

  @Test func `knows of a blob that a record which did not change refers to`() throws {
    var both = try TestRepository(posts: 3)
    try both.add("a.b.c/kept", blob: Self.image)
    var one = both
    try one.add("a.b.c/one", blob: Self.image)
    for (old, new) in [(both, one), (one, both)] {
      let found = try Found(old, new)
      #expect(found.added == [] && found.gone == [])
      #expect(found.lines.count == 1)
    }
  }

  @Test func `does not take a blob that moved for one that came or went`() throws {
    var (old, new) = (try TestRepository(posts: 3), try TestRepository(posts: 3))
    try old.add("a.b.c/one", blob: Self.image)
    try new.add("a.b.c/two", blob: Self.image)
    try old.add("a.b.c/changed", blob: Self.other, size: 1)
    try new.add("a.b.c/changed", blob: Self.other, size: 2)
    let found = try Found(old, new)
    #expect(found.counts == [1, 1, 1])
    #expect(found.added == [] && found.gone == [])
    // What no record but these two refers to, no other record needs to be asked about.
    #expect(!found.readAll)
  }

  @Test func `finds the blobs of odd records, too`() throws {
    var (old, new) = (try TestRepository(posts: 1), try TestRepository(posts: 1))
    let ref: IPLDValue = .map([
      "$type": .string("blob"), "ref": .link(Self.image), "mimeType": .string("image/png"),
      "size": .integer(1),
    ])
    old.add("a.b.c/float", bytes: try DAGCBOREncoder.encode(.map(["f": .float(1.5), "b": ref])))
    let legacy: IPLDMap = ["cid": .string("\(Self.other)"), "mimeType": .string("image/png")]
    try new.add("a.b.c/old-form", ["b": .map(legacy)])
    new.add("a.b.c/nothing", bytes: [0xff, 0x01])
    let found = try Found(old, new)
    #expect(found.gone == [Self.image])
    #expect(found.added == [Self.other])
    #expect(found.diff.gapCount == 0)
    try check(old, new, "odd records")
  }

  @Test func `of random repositories is what reading all of both finds`() throws {
    var random = SeededGenerator()
    print("The difference of two snapshots: \(random)")
    let start = "\(random)"
    for round in 0..<24 {
      // More changes than are read one by one, now and then.
      let (size, changes) = [(0, 3), (20, 5), (200, 20), (400, 400), (1500, 1500), (300, 1200)][
        round % 6]
      var old = TestRepository()
      func put(_ number: Int, into repository: inout TestRepository) throws {
        let path = "a.b.c/\(10_000 + number)"
        if Int.random(in: 0..<3, using: &random) == 0 {
          let blob = CID.blob(
            Array("blob \(Int.random(in: 0..<40 + size / 4, using: &random))".utf8))
          try repository.add(path, blob: blob, size: Int.random(in: 0..<3, using: &random))
        } else {
          let text = "text \(Int.random(in: 0..<5, using: &random))"
          try repository.add(path, ["text": .string(text)])
        }
      }
      for _ in 0..<size { try put(Int.random(in: 0..<size * 2, using: &random), into: &old) }
      var new = old
      for _ in 0..<changes {
        let number = Int.random(in: 0...size * 2, using: &random)
        if Bool.random(using: &random) {
          try put(number, into: &new)
        } else {
          new.remove("a.b.c/\(10_000 + number)")
        }
      }
      try check(old, new, "\(start), round \(round)")
    }
  }

  @Test func `of a tree that names one long record very often does not read it each time`() throws {
    let old = try TestRepository(posts: 1)
    var new = old
    var record: IPLDMap = ["text": .string(String(repeating: "a", count: 1_000_000))]
    record["blob"] = .map([
      "$type": .string("blob"), "ref": .link(Self.image), "mimeType": .string("image/png"),
      "size": .integer(1),
    ])
    let bytes = try DAGCBOREncoder.encode(.map(record))
    for number in 0..<40 { new.add("a.b.c/\(10_000 + number)", bytes: bytes) }
    let found = try Found(old, new)
    #expect(found.counts == [40, 0, 0])
    #expect(found.added == [Self.image])
    // When that has become too much, both snapshots are read as a whole instead.
    #expect(found.wholeCARs == Set([try old.car(), try new.car()].map { UInt64($0.count) }))
  }

  @Test func `goes on without a record that was not in the CAR, and says so`() throws {
    let old = try TestRepository(posts: 2)
    var new = old
    try new.add("a.b.c/here", blob: Self.image)
    try new.add("a.b.c/missing", blob: Self.other)
    new.omitted = Set([new.cid(of: "a.b.c/missing")].compactMap { $0 })
    let found = try Found(old, new)
    #expect(found.counts == [2, 0, 0])
    #expect(found.added == [Self.image])
    #expect(found.diff.gaps.map(\.side) == [.new])
    #expect(found.diff.gaps.allSatisfy { $0.what.contains("a.b.c/missing") && !$0.isDamage })
    let back = try Found(new, old)
    #expect(back.gone == [Self.image])
    #expect(back.diff.gaps.map(\.side) == [.old])
  }

  @Test func `cannot be told without a tree node that only one of them has`() throws {
    let old = try TestRepository(posts: 100)
    var new = old
    try new.add("app.bsky.feed.post/3k1000050a", ["x": .integer(1)])
    let nodes = Set(try old.blocks().map(\.cid))
    let lost = try #require(
      try new.blocks().first { block in
        !nodes.contains(block.cid) && (try? MSTNode(block.bytes.span)) != nil
      })
    new.omitted = [lost.cid]
    for (from, to, side) in [(old, new, MSTDiff.Side.new), (new, old, .old)] {
      let error = #expect(throws: MSTDiffError.self) { try Found(from, to) }
      #expect(error?.side == side)
      #expect(error?.problem.kind == .missing)
      #expect(error?.problem.node == lost.cid)
    }
    // A node that is missing from both is the same in both.
    var (one, two) = (old, old)
    one.omitted = [
      try #require(try old.blocks().dropFirst().first { (try? MSTNode($0.bytes.span)) != nil }).cid
    ]
    two.omitted = one.omitted
    two.rev = "3lscuqc52or3x"
    #expect(try Found(one, two).diff.isEmpty)
  }

  @Test(arguments: [3, 1500])
  func `goes on without a record that is damaged, and says so`(posts: Int) throws {
    // Few changes are read one by one, many all at once; long records have a frame of their own.
    let old = try TestRepository(posts: 1)
    var new = try TestRepository(posts: 1 + posts)
    new.rev = "3lscuqc52or3x"
    try new.add("a.b.c/here", blob: Self.image)
    try new.add(
      "a.b.c/long",
      [
        "text": .string(String(repeating: "x", count: 100_000)),
        "blob": .map([
          "$type": .string("blob"), "ref": .link(Self.other), "mimeType": .string("image/png"),
          "size": .integer(1),
        ]),
      ])
    var series = try SeriesArchive()
    try series.add(try old.car())
    try series.add(try new.car())
    let long = try #require(new.cid(of: "a.b.c/long"))
    func compare(_ bytes: [UInt8]) throws -> Found {
      let reader = try series.reader(bytes)
      return try Found(
        ArchivedSnapshot(series.snapshots[0].cid, in: reader),
        ArchivedSnapshot(series.snapshots[1].cid, in: reader))
    }
    let intact = try compare(series.bytes)
    #expect(intact.added.count == 2 && intact.diff.gapCount == 0)
    let damaged = try compare(try series.damaging(long))
    #expect(damaged.lines == intact.lines)
    #expect(damaged.added == [Self.image])
    #expect(!damaged.diff.gaps.isEmpty)
    #expect(damaged.diff.gaps.allSatisfy { $0.side == .new && $0.isDamage })
    // A damaged node is another matter: what is below it is not known.
    let node = try #require(
      try new.blocks().dropFirst().first { (try? MSTNode($0.bytes.span)) != nil }?.cid)
    #expect(throws: ArchiveError.self) { try compare(try series.damaging(node)) }
  }

  @Test func `works within one archive that holds both`() throws {
    var old = try TestRepository(posts: 30)
    try old.add("a.b.c/old", blob: Self.image)
    var new = try TestRepository(posts: 31)
    new.rev = "3lscuqc52or3x"
    var series = try Series()
    for car in [try old.car(), try new.car()] { try series.pack(car) }
    let reader = try series.reader
    let found = try Found(
      ArchivedSnapshot(series.heads[0], in: reader), ArchivedSnapshot(series.heads[1], in: reader))
    #expect(found.lines == ["- a.b.c/old", "+ app.bsky.feed.post/3k1000030"])
    #expect(found.gone == [Self.image])
  }
}
