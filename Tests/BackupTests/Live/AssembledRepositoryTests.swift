import ATProtocol
import Archive
import IPLD
internal import Repository
import StandIn
import SystemPackage
import TestSupport
import Testing
internal import Verification

@testable import Live
@testable import Snapshots

@Suite(.timeLimit(.minutes(15))) struct `A repository put together from what has changed` {
  private static let file = "a.car.zst"

  private func restored(_ snapshot: ArchivedSnapshot, exporting: Bool) throws -> [UInt8] {
    let restored = try RestoredRepository(snapshot, exporting: exporting)
    #expect(restored.isExact)
    return restored.withBytes { $0.array }
  }

  private func blocks(_ car: [UInt8]) throws -> [CID] {
    let header = try CARHeader(car.span)
    var cursor = CARCursor(header: header, payload: 0..<car.count)
    var cids: [CID] = []
    while let (section, cid) = try cursor.next(in: car.span) {
      #expect(cid.verify(car.span.extracting(section.bodyRange)) == .matches)
      cids.append(cid)
    }
    return cids
  }

  /// Some records more, some fewer, some others.
  private func change(
    _ account: StandInAccount, _ count: Int, _ number: Int, _ generator: inout SeededGenerator
  ) throws {
    var writes: [StandInAccount.Write] = []
    var paths = account.paths
    for step in 0..<count {
      switch Int.random(in: 0..<4, using: &generator) {
      case 0 where paths.count > 3:
        let path = paths.remove(at: .random(in: 0..<paths.count, using: &generator))
        writes.append(.delete(path: path))
      case 1 where paths.count > 3:
        // The same record under two keys, now and then.
        let path = paths.remove(at: .random(in: 0..<paths.count, using: &generator))
        writes.append(.put(path: path, record: ["$type": .string("app.test"), "n": .integer(7)]))
      default:
        let text = "change \(number), \(step)"
        writes.append(
          account.post("3k\(Int.random(in: 1_000_000..<9_000_000, using: &generator))zzzz", text))
      }
    }
    try account.commit(writes)
  }

  @Test(arguments: [UInt64(1), 2, 3, 4])
  func `is the account's, block for block, and comes back in canonical order`(seed: UInt64)
    async throws
  {
    var generator = SeededGenerator(printing: seed)
    let account = try StandInAccount("many", posts: .random(in: 0...80, using: &generator))
    let scene = try AccountScene([account])
    try await scene.backUp(account, into: Self.file)
    var undigestedCount = 0
    for number in 0..<8 {
      try change(account, .random(in: 0...20, using: &generator), number, &generator)
      let report = try await scene.backUp(account, into: Self.file)
      let snapshot = try scene.snapshot(report.path)
      let full = account.car()
      #expect(snapshot.snapshot.commit == account.head)
      #expect(Set(try blocks(restored(snapshot, exporting: false))) == Set(try blocks(full)))
      #expect(
        try blocks(restored(snapshot, exporting: false)).count == Set(try blocks(full)).count,
        "each once")
      #expect(try restored(snapshot, exporting: true) == full)
      #expect(
        try snapshot.snapshot.car.byteCount == UInt64(restored(snapshot, exporting: false).count))
      let inspection = try RepositoryInspection(car: full)
      #expect(snapshot.snapshot.counts == Snapshot.Counts(inspection))
      #expect(snapshot.snapshot.blobs.referenced == inspection.blobs.entries.count)
      if snapshot.snapshot.car.sha256 == nil { undigestedCount += 1 }
      let features = snapshot.reader.generation.features
      #expect(
        features.required
          == FeatureFlags.packedIndex | (undigestedCount > 0 ? FeatureFlags.undigested : 0))
    }
    #expect(try scene.verdict(scene.path(Self.file)) == .intact)
    // All snapshots that were made on the way are there still, each as it was exported.
    #expect(scene.requestCount("getRepo") == 9)
  }

  @Test func `says so in its manifest, and one that came whole does not`() async throws {
    let account = try StandInAccount("many", posts: 40)
    let scene = try AccountScene([account])
    let first = try await scene.backUp(account, into: Self.file)
    let rev = account.rev
    #expect(first.snapshot.fetched != nil && first.snapshot.fetched?.since == nil)
    try account.commit([account.post("3zzzzzzzzzzzz", "one more")])
    let second = try await scene.backUp(account, into: Self.file)
    #expect(second.snapshot.fetched?.since == rev)
    scene.server.behaviour.since = .ignored
    try account.commit([account.post("3zzzzzzzzzzzy", "another")])
    let third = try await scene.backUp(account, into: Self.file)
    #expect(third.snapshot.fetched != nil && third.snapshot.fetched?.since == nil)
    #expect(try restored(scene.snapshot(third.path), exporting: false) == account.car())
  }

  @Test(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
  func `comes back in the same order from a reader that knows the document alone`() async throws {
    let account = try StandInAccount("many", posts: 300)
    let scene = try AccountScene([account])
    try await scene.backUp(account, into: Self.file)
    var exported = [account.car()]
    for number in 0..<3 {
      try account.commit(
        (0..<5).map { account.post("3l\(1_000_000 + number * 5 + $0)aaaa", "more") })
      #expect(try await scene.backUp(account, into: Self.file).snapshot.fetched?.since != nil)
      exported.append(account.car())
    }
    let (path, car) = (scene.path(Self.file).string, scene.folder.file("again.car"))
    for (back, expected) in exported.reversed().enumerated() {
      #expect(try IndependentReader.run(["car", path, car, "--back", "\(back)"]).status == 0)
      #expect(try scene.folder.read("again.car") == expected)
    }
    #expect(try IndependentReader.run(["verify", path]).status == 0)
  }

  /// Figures that no snapshot has, and that cannot be counted on from.
  @Test(arguments: [-1, 0, 1, Int.max - 1, Int.max])
  func `is counted anew after a snapshot whose figures cannot be`(figure: Int) async throws {
    let account = try StandInAccount("many", posts: 300)
    let scene = try AccountScene([account])
    try await scene.backUp(account, into: Self.file)
    let newest = try scene.snapshot(scene.path(Self.file))
    for (number, keyPath) in [
      \Snapshot.counts.records, \.unreadable.count, \.blobs.referenced,
    ].enumerated() {
      var lying = newest.snapshot
      lying[keyPath: keyPath] = figure
      lying.previous = newest.cid
      do {
        var writer = try ArchiveWriter.reopen(FileStorage.open(scene.path(Self.file)))
        let bytes = try lying.encode()
        let manifest = CID(codec: .dagCBOR, hashing: bytes.span)
        try writer.append(manifest, bytes.span)
        _ = try writer.commit(manifest: manifest)
      } catch is ArchiveError where figure < 0 {
        continue
      }
      try account.commit([account.post("3l\(1_000_000 + number)aaaa", "more")])
      let report = try await scene.backUp(account, into: Self.file)
      let inspection = try RepositoryInspection(car: account.car())
      if figure > 1 { #expect(report.snapshot.counts == Snapshot.Counts(inspection)) }
      #expect(try restored(scene.snapshot(report.path), exporting: true) == account.car())
    }
  }

  @Test func `takes as many more bytes as there are changes, not as there are records`()
    async throws
  {
    let account = try StandInAccount("many", posts: 3000)
    let scene = try AccountScene([account])
    try await scene.backUp(account, into: Self.file)
    for number in 0..<5 {
      try account.commit(
        (0..<4).map { account.post("3l\(1_000_000 + number * 4 + $0)aaaa", "more") })
      let report = try await scene.backUp(account, into: Self.file)
      #expect(report.snapshot.fetched?.since != nil)
      #expect(report.snapshot.car.sha256 == nil, "nobody has put it together")
      // Four paths of nodes, with some fifty entries each, and the index; 3,000 positions written
      // out would be more.
      #expect(report.bytesAdded < 40_000, "\(report.bytesAdded)")
      if let runs = report.snapshot.car.runs {
        #expect(runs.count < 600, "\(runs.count)")
      } else {
        Issue.record("the order is short enough for the manifest")
      }
    }
    #expect(try scene.verdict(scene.path(Self.file)) == .intact)
  }

  @Test func `is not made of a part that does not lead to all of the tree`() async throws {
    let account = try StandInAccount("many", posts: 200)
    let scene = try AccountScene([account])
    let report = try await scene.backUp(account, into: Self.file)
    try account.commit([account.post("3zzzzzzzzzzzz", "one more")])
    let changes = account.car(since: report.snapshot.rev)
    let base = try scene.snapshot(report.path)
    func assembled(_ car: [UInt8]) throws -> CheckedRepository {
      try CheckedRepository(CARFile(MappedFile(copying: car)), over: base)
    }
    #expect(try Snapshot.LeftOut(of: assembled(changes)) == nil)
    // The commit alone, whose tree does not exist.
    var commitAlone: [UInt8] = []
    CARWriter.appendHeader(roots: [account.head], to: &commitAlone)
    var cursor = CARCursor(header: try CARHeader(changes.span), payload: 0..<changes.count)
    while let (section, cid) = try cursor.next(in: changes.span) {
      guard cid == account.head else { continue }
      commitAlone += changes[section.start..<section.end]
    }
    for car in [commitAlone, CARHeader(roots: [account.head]).bytes, CARHeader(roots: []).bytes] {
      #expect(throws: IncompleteRepository.self) {
        try assembled(car)
      }
    }
  }
}

/// A repository's CAR in canonical order.
func canonicalCAR(_ car: MappedFile) throws -> MappedFile {
  let file = try CARFile(car, verifying: false)
  let root = file.header.roots.first
  _ = try file.commit(root)
  var bytes = CARHeader(roots: root.map { [$0] } ?? []).bytes
  for number in file.blocksInOrderOfTree(from: root) {
    file.withSection(at: file.start(of: number)) { content, section in
      bytes += content.array(section.start..<section.end)
    }
  }
  return MappedFile(copying: bytes)
}

@Suite struct `Canonical order` {
  @Test
  func `is the commit, then the tree from the top, each record after its entry, each block once`()
    throws
  {
    var repository = try TestRepository(posts: 120)
    // Two keys, one record.
    try repository.add("app.test.same/a", ["$type": .string("app.test.same")])
    try repository.add("app.test.same/b", ["$type": .string("app.test.same")])
    repository.strays = [Block(cid: .blob([1, 2, 3]), bytes: [1, 2, 3])]
    let car = try repository.car()
    let exported = try canonicalCAR(MappedFile(copying: car))
    let bytes = exported.withBytes { $0.array }
    let header = try CARHeader(bytes.span)
    #expect(header.roots == (try CARHeader(car.span).roots))
    var bodies: [CID: [UInt8]] = [:]
    var order: [CID] = []
    var cursor = CARCursor(header: header, payload: 0..<bytes.count)
    while let (section, cid) = try cursor.next(in: bytes.span) {
      bodies[cid] = Array(bytes[section.bodyRange])
      order.append(cid)
    }
    // The order as the specification has it, written down a second time.
    var expected = [header.roots[0]]
    func descend(_ cid: CID) throws {
      let body = try #require(bodies[cid])
      expected.append(cid)
      let node = try MSTNode(body.span)
      if let left = node.left { try descend(left) }
      for entry in node.entries {
        if !expected.contains(entry.value) { expected.append(entry.value) }
        if let right = entry.right { try descend(right) }
      }
    }
    let commit = try #require(bodies[header.roots[0]])
    try descend(Commit(commit.span).data)
    #expect(order == expected)
    #expect(Set(order).count == order.count)
    #expect(order.count == (try repository.blocks().count) - 1, "all but the stray")
    // It is its own.
    let again = try canonicalCAR(exported)
    #expect(again.withBytes { $0.array } == bytes)
  }

  @Test func `has what is left of a repository with holes`() throws {
    var repository = try TestRepository(posts: 60)
    let omitted = try #require(repository.cid(of: "app.bsky.feed.post/3k1000007"))
    repository.omitted = [omitted]
    let exported = try canonicalCAR(MappedFile(copying: repository.car()))
    let inspection = RepositoryInspection(of: try CARFile(exported))
    #expect(inspection.missingRecordCount == 1)
    #expect(inspection.recordCount == 60)
  }

  @Test func `is not had of what is no repository`() throws {
    let stray = Block(cid: CID(codec: .dagCBOR, hashing: [0xa0].span), bytes: [0xa0])
    var car = CARHeader(roots: [stray.cid]).bytes
    #expect(throws: RepositoryError.commitMissing(stray.cid)) {
      try canonicalCAR(MappedFile(copying: car))
    }
    CARWriter.appendSection(stray.cid, stray.bytes.span, to: &car)
    #expect(throws: RepositoryError.self) { try canonicalCAR(MappedFile(copying: car)) }
    #expect(throws: RepositoryError.noRoot) {
      try canonicalCAR(MappedFile(copying: CARHeader(roots: []).bytes))
    }
  }
}
