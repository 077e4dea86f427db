import ATProtocol
import Archive
import Foundation
import IPLD
internal import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `Verifying many snapshots` {
  private static let image = SampleFile.png("an image")
  private static let photo = SampleFile.jpeg("a photo")

  private func verify(
    _ archive: SeriesArchive, _ depth: SnapshotVerifier.Depth = .full,
    _ scope: SnapshotVerifier.Scope = .all, digestsAllCARs: Bool = false
  ) throws -> SnapshotVerifier.Report {
    try SnapshotVerifier(digestsAllCARs: digestsAllCARs).verify(archive.reader(), depth, scope)
  }

  /// The verdicts, the oldest snapshot first.
  private func verdicts(_ report: SnapshotVerifier.Report) -> [SnapshotVerifier.Verdict?] {
    report.snapshots.reversed().map(\.verdict)
  }

  /// The CAR with its blocks in another order.
  private func shuffled(_ car: [UInt8], _ random: inout SeededGenerator) throws -> [UInt8] {
    let header = try CARHeader(car.span)
    var cursor = CARCursor(header: header, payload: 0..<car.count)
    var sections: [Range<Int>] = []
    while let (section, _) = try cursor.next(in: car.span) {
      sections.append(section.start..<section.end)
    }
    return sections.shuffled(using: &random).reduce(into: Array(car[..<header.length])) {
      $0 += car[$1]
    }
  }

  @Test func `finds each as its own CAR is, however they share blocks`() throws {
    var random = SeededGenerator(printing: 0x5e41_0001)
    for _ in 0..<5 {
      var archive = try SeriesArchive()
      var repositories = [try TestRepository(posts: 200), try TestRepository(posts: 150)]
      repositories[1].did = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
      var expected: [(verdict: SnapshotVerifier.Verdict, missing: Int)] = []
      var held: Set<CID> = []
      for number in 0..<25 {
        let account = Int.random(in: 0..<2, using: &random)
        for change in 0..<Int.random(in: 0...6, using: &random) {
          let path = "a.b.c/\(Int.random(in: 0..<60, using: &random))"
          let blob = Array("blob \(Int.random(in: 0..<40, using: &random))".utf8)
          switch Int.random(in: 0..<4, using: &random) {
          case 0: repositories[account].remove(path)
          case 1: try repositories[account].add(path, blob: .blob(blob))
          default: try repositories[account].add(path, ["text": .string("\(number) \(change)")])
          }
        }
        var repository = repositories[account]
        let blocks = try repository.blocks()
        // Now and then a CAR lacks blocks that the archive has anyway.
        let isPartial = Int.random(in: 0..<5, using: &random) == 0
        if isPartial {
          repository.omitted = Set(blocks.dropFirst().shuffled(using: &random).prefix(3).map(\.cid))
        }
        let car = try shuffled(repository.car(), &random)
        let inspection = try RepositoryInspection(car: car)
        let blobs = (0..<3).map { _ in
          Array("blob \(Int.random(in: 0..<40, using: &random))".utf8)
        }
        held.formUnion(blobs.map { .blob($0) })
        try archive.add(car, blobs: blobs)
        #expect(inspection.isComplete == !isPartial)
        expected.append(
          (
            isPartial ? .incomplete : .intact,
            inspection.blobs.entries.count { !held.contains($0.cid) }
          ))
      }
      let report = try verify(archive)
      #expect(report.damage == [])
      #expect(report.snapshots.count == expected.count)
      // What later snapshots bring, earlier ones have, too.
      for (found, made) in zip(report.snapshots.reversed(), archive.snapshots) {
        let inspection = try RepositoryInspection(car: made.car)
        let missing = inspection.blobs.entries.count { !held.contains($0.cid) }
        #expect(found.blobs.missing == missing)
        let isWhole = inspection.isComplete && missing == 0
        #expect(found.verdict == (isWhole ? .intact : .incomplete))
      }
      let lost = Set(report.missingBlobs.map(\.cid))
      #expect(lost.count == report.missingBlobs.count)
      #expect(lost.isDisjoint(with: held))
    }
  }

  @Test func `names the one whose manifest lies`() throws {
    for change in [
      { $0.counts.records += 1 }, { $0.isComplete = false }, { $0.blobs.referenced = 1 },
      { $0.car.byteCount += 1 }, { $0.car.sha256 = SHA256.digest(of: [9].span) },
      { $0.car.sectionCount += 1 }, { $0.car.runs = [0, 5, 0, 5] }, { $0.rev = nil },
      { $0.commit = .blob([1]) }, { $0.extrasPages = [.blob([1])] },
      { $0.missingPages = [.blob([1])] }, { $0.plcLog = .blob([1]) },
    ] as [(inout Snapshot) -> Void] {
      var archive = try SeriesArchive()
      for number in 0..<4 {
        try archive.add(TestRepository(posts: 20 + number).car()) { snapshot in
          if number == 2 { change(&snapshot) }
        }
      }
      let report = try verify(archive, digestsAllCARs: true)
      #expect(report.verdict == .damaged)
      #expect(verdicts(report) == [.intact, .intact, .damaged, .intact])
      #expect(
        try verify(archive, .full, .snapshots([report.snapshots[0].entry])).verdict == .intact)
      #expect(
        try verify(archive, .full, .snapshots([report.snapshots[1].entry])).verdict == .damaged)
    }
  }

  @Test func `compares the digests of CARs that decide, and of others if it is asked to`() throws {
    for (lying, others) in [(3, [0, 1, 2]), (1, [0, 2, 3])] {
      var archive = try SeriesArchive()
      for number in 0..<4 {
        try archive.add(TestRepository(posts: 20 + number).car()) { snapshot in
          if number == lying { snapshot.car.sha256 = SHA256.digest(of: [9].span) }
        }
      }
      let report = try verify(archive)
      #expect(report.snapshots.map(\.isCARDigested) == [true, false, false, false])
      #expect(report.verdict == (lying == 3 ? .damaged : .intact))
      let complete = try verify(archive, digestsAllCARs: true)
      #expect(complete.snapshots.map(\.isCARDigested) == [true, true, true, true])
      #expect(verdicts(complete)[lying] == .damaged)
      for other in others { #expect(verdicts(complete)[other] == .intact) }
    }
  }

  @Test func `needs no digest of a CAR that never was`() throws {
    var archive = try SeriesArchive()
    for number in 0..<3 {
      try archive.add(TestRepository(posts: 20 + number).car()) { snapshot in
        if number > 0 { snapshot.car.sha256 = nil }
      }
    }
    let report = try verify(archive, digestsAllCARs: true)
    #expect(report.verdict == .intact)
    #expect(report.damage == [])
  }

  @Test func `finds that a CAR lacks what only another has, whatever its manifest says`() throws {
    var archive = try SeriesArchive()
    var repository = try TestRepository(posts: 40)
    try archive.add(repository.car())
    let record = try #require(repository.cid(of: "app.bsky.feed.post/3k1000007"))
    for (omitted, verdict) in [(record, SnapshotVerifier.Verdict.damaged), (record, .incomplete)] {
      repository.omitted = [omitted]
      try archive.add(repository.car()) { $0.isComplete = verdict == .damaged }
      try archive.add(TestRepository(posts: 41).car())
    }
    #expect(verdicts(try verify(archive)) == [.intact, .damaged, .intact, .incomplete, .intact])
  }

  /// A CAR whose tree is one node above that of another, and the blocks of that.
  private func car(above repository: TestRepository, _ key: [UInt8]) throws -> [UInt8] {
    let blocks = try repository.blocks()
    let top = blocks[0].bytes
    let commit = try Commit(top.span)
    let body = try DAGCBOREncoder.encode(.map(["text": .string("above")]))
    let record = Block(cid: CID(codec: .dagCBOR, hashing: body.span), bytes: body)
    let entry: IPLDMap = [
      "k": .bytes(key), "p": .integer(0), "t": .null, "v": .link(record.cid),
    ]
    let node = try DAGCBOREncoder.encode(
      .map(["e": .array([.map(entry)]), "l": .link(commit.data)]))
    let root = Block(cid: CID(codec: .dagCBOR, hashing: node.span), bytes: node)
    let commitBytes = try DAGCBOREncoder.encode(
      .map([
        "did": .string(repository.did), "version": .integer(3), "rev": .string("3lscuqc52or2x"),
        "prev": .null, "data": .link(root.cid),
        "sig": .bytes([UInt8](repeating: 1, count: 64)),
      ]))
    let first = Block(cid: CID(codec: .dagCBOR, hashing: commitBytes.span), bytes: commitBytes)
    var car: [UInt8] = []
    CARWriter.appendHeader(roots: [first.cid], to: &car)
    for block in [first, root, record] + blocks.dropFirst() {
      CARWriter.appendSection(block.cid, block.bytes.span, to: &car)
    }
    return car
  }

  /// A key that begins so and belongs to this layer.
  private func key(_ start: String, layer: Int) -> [UInt8] {
    var number = 0
    while true {
      let key = Array("\(start)\(number)".utf8)
      if MSTLayer.layer(of: key.span) == layer { return key }
      number += 1
    }
  }

  @Test func `finds a subtree in a place where it does not belong`() throws {
    let repository = try TestRepository(posts: 30)
    let plain = try repository.car()
    let top = try RepositoryInspection(car: plain).rootLayer
    let layer = try #require(top)
    for (start, layer, verdict) in [
      ("z.z.z/", layer + 1, .intact), ("z.z.z/", layer, .damaged), ("z.z.z/", layer + 2, .damaged),
      ("a.a.a/", layer + 1, .damaged),
    ] as [(String, Int, SnapshotVerifier.Verdict)] {
      let odd = try car(above: repository, key(start, layer: layer))
      let inspection = try RepositoryInspection(car: odd)
      #expect(inspection.treeProblems.isEmpty == (verdict == .intact))
      var archive = try SeriesArchive()
      try archive.add(repository.car())
      try archive.add(odd) { $0.counts.records = 31 }
      try archive.add(TestRepository(posts: 31).car())
      #expect(verdicts(try verify(archive)) == [.intact, verdict, .intact])
      // The other way round, with nothing known of the subtree yet.
      archive = try SeriesArchive()
      try archive.add(odd) { $0.counts.records = 31 }
      try archive.add(repository.car())
      #expect(verdicts(try verify(archive)) == [verdict, .intact])
    }
  }

  @Test func `tells a tree that breaks the rules from those beside it that do not`() throws {
    var archive = try SeriesArchive()
    for number in 0..<3 {
      var repository = try TestRepository(posts: 25 + number)
      if number == 1 { repository.add("../../x", bytes: [0xa0]) }
      try archive.add(repository.car())
    }
    let report = try verify(archive)
    #expect(verdicts(report) == [.intact, .damaged, .intact])
    #expect(report.snapshots[1].damage.count { $0.contains("legal record path") } == 1)
  }

  @Test func `says of every snapshot what a damaged block takes from it`() throws {
    var archive = try SeriesArchive()
    var repositories: [TestRepository] = []
    for number in 0..<3 {
      var repository = try TestRepository(posts: 40 + number)
      try repository.add("a.b.c/x", ["text": .string("of \(number)")])
      repositories.append(repository)
      try archive.add(repository.car())
    }
    // A record that only the second has, and with it what else that generation brought.
    let record = try #require(repositories[1].cid(of: "a.b.c/x"))
    let reader = try archive.reader(archive.damaging(record))
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.verdict == .damaged)
    // What still hashes to its CID in a damaged pack is not lost, and that may be all that the
    // third has of it.
    #expect(verdicts(report).prefix(2) == [.intact, .damaged])
    #expect(report.snapshots[1].damage.first?.contains("bit for bit") ?? false)
    let quick = try SnapshotVerifier().verify(reader, .quick)
    #expect(quick.verdict == .damaged)
    #expect(verdicts(quick) == [nil, nil, nil])
    // The first generation has what all share.
    let commit = archive.snapshots[0].snapshot.commit
    let all = try SnapshotVerifier().verify(archive.reader(archive.damaging(commit)), .full)
    #expect(verdicts(all) == [.damaged, .damaged, .damaged])
  }

  @Test func `lets what only older ones lack be, unless they are asked about`() throws {
    var archive = try SeriesArchive()
    var repository = try TestRepository(posts: 5)
    try repository.add("a.b.c/1", blob: .blob(Self.image))
    try repository.add("a.b.c/2", blob: .blob(Self.photo))
    try archive.add(repository.car(), blobs: [Self.photo])
    repository.remove("a.b.c/1")
    try archive.add(repository.car())
    let report = try verify(archive)
    #expect(report.verdict == .intact)
    #expect(verdicts(report) == [.incomplete, .intact])
    #expect(report.missingBlobs.map(\.cid) == [.blob(Self.image)])
    #expect(report.missingBlobs.map(\.record) == ["a.b.c/1"])
    let old = report.snapshots[1].entry
    #expect(try verify(archive, .full, .snapshots([old])).verdict == .incomplete)
    #expect(try verify(archive, .quick).verdict == .intact)
    #expect(try verify(archive, .quick, .snapshots([old])).verdict == .incomplete)
  }

  @Test func `judges the newest of each account`() throws {
    var archive = try SeriesArchive()
    var other = try TestRepository(posts: 2)
    other.did = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
    try other.add("a.b.c/1", blob: .blob(Self.image))
    try archive.add(other.car())
    try archive.add(TestRepository(posts: 3).car())
    let report = try verify(archive)
    #expect(report.verdict == .incomplete)
    #expect(report.snapshots.map(\.isJudged) == [true, true])
    let (mine, theirs) = (report.snapshots[0].entry.did, report.snapshots[1].entry.did)
    #expect(try verify(archive, .full, .account(mine)).verdict == .intact)
    #expect(try verify(archive, .full, .account(theirs)).verdict == .incomplete)
  }

  @Test func `counts a blob that came later`() throws {
    var archive = try SeriesArchive()
    var repository = try TestRepository(posts: 5)
    try repository.add("a.b.c/1", blob: .blob(Self.image))
    try archive.add(repository.car())
    #expect(try verify(archive).verdict == .incomplete)
    try archive.add(TestRepository(posts: 6).car(), blobs: [Self.image])
    let report = try verify(archive)
    #expect(report.verdict == .intact)
    #expect(verdicts(report) == [.intact, .intact])
  }

  @Test func `finds that a blob is gone that was there`() throws {
    var archive = try SeriesArchive()
    var repository = try TestRepository(posts: 5)
    try repository.add("a.b.c/1", blob: .blob(Self.image))
    try archive.add(repository.car()) { $0.blobs.held = 1 }
    #expect(try verify(archive).verdict == .damaged)
  }

  @Test func `reports a missing blob once, of the newest that lacks it`() throws {
    var archive = try SeriesArchive()
    var repository = try TestRepository(posts: 5)
    try repository.add("a.b.c/1", blob: .blob(Self.image))
    for number in 0..<3 {
      try repository.add("a.b.c/0", ["text": .string("\(number)")])
      try archive.add(repository.car())
    }
    let report = try verify(archive)
    #expect(report.snapshots.map(\.blobs.missing) == [1, 1, 1])
    #expect(report.snapshots.map(\.missingBlobs.count) == [1, 0, 0])
  }

  @Test func `says that a manifest in the chain is lost`() throws {
    var archive = try SeriesArchive()
    for number in 0..<3 {
      var repository = try TestRepository(posts: 5 + number)
      repository.rev = "3lscuqc52o\(["a", "b", "c"][number])2x"
      try archive.add(repository.car())
    }
    let reader = try archive.reader(archive.damaging(manifest: 1))
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.verdict == .damaged)
    #expect(report.fileDamage.count == 1)
    #expect(report.fileDamage.first?.contains("is lost with its manifest") == true)
    #expect(verdicts(report) == [.intact, .intact])
    let terms = ProofTerms(now: UnixTime(microseconds: 0), key: nil)
    let judged = try SnapshotVerifier(judging: terms).verify(reader, .full)
    let continuity = judged.snapshots.map { $0.levels?[.continuous].isHeld }
    #expect(continuity == [nil, true])
  }

  @Test func `warns of a record that breaks the data model once, whoever has it`() throws {
    var archive = try SeriesArchive()
    var repository = try TestRepository(posts: 5)
    repository.add("a.b.c/bytes", bytes: [0xa0, 0x01])
    for number in 0..<3 {
      try repository.add("a.b.c/0", ["text": .string("\(number)")])
      try archive.add(repository.car())
    }
    let report = try verify(archive)
    #expect(report.verdict == .intact)
    #expect(report.recordWarnings.map(\.record) == ["a.b.c/bytes"])
  }
}

/// A series of real repositories: successive states of one account.
@Suite(.enabled(if: Corpus.isPresent, Comment(rawValue: Corpus.absence)))
struct `A real account over time` {
  @Test(arguments: Corpus.files(under: "repos", suffix: "series.json"))
  func `verifies, and every state of it comes back`(name: String) throws {
    let folder = String(name.dropLast("/series.json".count))
    let cars = Corpus.files(under: folder, suffix: ".car")
    var archive = try SeriesArchive()
    for car in cars { try archive.add(Corpus.bytes(car)) }
    let reader = try archive.reader()
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.damage == [])
    #expect(report.damagedBlobs.isEmpty)
    #expect(report.snapshots.count == cars.count)
    for (found, car) in zip(report.snapshots.reversed(), cars) {
      let bytes = try Corpus.bytes(car)
      let inspection = try RepositoryInspection(car: bytes)
      #expect(found.blobs.missing == inspection.blobs.entries.count)
      let restored = try RestoredRepository(ArchivedSnapshot(found.entry.cid, in: reader))
      #expect(restored.withBytes { $0.array } == bytes)
    }
  }
}
