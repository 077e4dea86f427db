import ATProtocol
import Archive
import Copying
import HTTP
import IPLD
import StandIn
import SystemPackage
import TestSupport
import Testing

@testable import Files
@testable import Live
@testable import Snapshots
@testable import Verification

@Suite(.timeLimit(.minutes(10))) struct `Context in an archive` {
  @Test func `has no more items than its limit, those of the newest records`() async throws {
    let scene = try ContextScene(follows: 0..<50)
    let report = try await scene.backUp { $0.items = 20 }
    #expect(report.context?.leftOut == 30)
    #expect(report.warnings.contains { $0.contains("posts left out of the context (30)") })
    let items = try scene.items()
    #expect(items.count == 20 && items[StandInAccount.person(49)] != nil)
    #expect(items[StandInAccount.person(0)] == nil)
  }

  @Test func `has no more bytes than its limit`() async throws {
    let scene = try ContextScene(likes: 200)
    let report = try await scene.backUp { $0.bytes = 5_000 }
    #expect(report.outcome == .complete && (report.context?.leftOut ?? 0) > 0)
    #expect(try scene.items().count < 400)
  }

  @Test func `serves the other accounts of the archive, too`() async throws {
    let bob = try StandInAccount("bob", posts: 1)
    try bob.commit(StandInAccount.pointing(likes: 0..<10, follows: 40..<41))
    let scene = try ContextScene(likes: 20, others: [bob])
    try await scene.backUp()
    scene.forgetLog()
    let report = try await scene.backUp(of: bob)
    #expect(scene.appView.requestCount(getPosts) == 0)
    #expect(scene.appView.asked(getProfiles) == [StandInAccount.person(40)])
    #expect(report.outcome == .complete)
    #expect(try scene.items().count == 21)
    #expect(try scene.scene.verdict(scene.path) == .intact)
  }

  @Test func `goes along when the archive is pruned, compacted and merged`() async throws {
    let scene = try ContextScene(likes: 40)
    try await scene.backUp()
    try scene.account.commit(StandInAccount.pointing(likes: 100..<110))
    try await scene.backUp()
    let items = try scene.items()
    _ = try RetentionPolicy(last: 1).prune(FileStorage.open(scene.path), name: "a")
    #expect(try scene.items() == items)
    _ = try ArchiveCopier(level: 3).compact(scene.path)
    #expect(try scene.items() == items)
    #expect(try scene.scene.verdict(scene.path) == .intact)
    let bob = try StandInAccount("bob", posts: 1)
    scene.scene.server.add(bob)
    try await scene.scene.backUp(bob, into: "bob.car.zst")
    let merged = scene.scene.path("merged.car.zst")
    let sources = try [scene.path, scene.scene.path("bob.car.zst")].map {
      try SourceArchive(ArchiveReader(path: $0), name: $0.string)
    }
    _ = try ArchiveCopier(level: 3).merge(sources, to: AtomicFile(merged, replacing: false))
    let snapshot = try #require(
      try ArchivedSnapshot.newest(of: DID(scene.account.did), in: ArchiveReader(path: merged)))
    var found: [String: ContextItem] = [:]
    try snapshot.forEachContextItem { found[$0.subject.text] = $0 }
    #expect(found == items)
    #expect(try scene.scene.verdict(merged) == .intact)
  }

  @Test func `is saved without what is lost, which is asked for again`() async throws {
    let scene = try ContextScene(likes: 40)
    // One picture for all, too long to lie with anything else in a frame.
    var random = SeededGenerator(seed: 7)
    scene.appView.behaviour.pictureBytes = [0xff, 0xd8, 0xff, 0xe0] + random.bytes(200_000)
    try await scene.backUp()
    let items = try scene.items()
    let piece = try #require(items.values.lazy.flatMap(\.pieces).first)
    let bytes = try scene.scene.folder.damaging([piece], in: scene.path)
    try scene.scene.folder.write("damaged.car.zst", bytes)
    let damaged = scene.scene.path("damaged.car.zst")
    #expect(try scene.scene.verdict(damaged) == .damaged)
    let saved = scene.scene.path("saved.car.zst")
    let report = try ArchiveCopier().salvage(
      ArchiveReader(path: damaged), into: FileStorage.openOrCreate(saved),
      by: SnapshotBuilder.Provenance(
        tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 }))
    // The snapshot before it has none.
    #expect(report.snapshots.map { $0.loss.documents.contains(piece) } == [false, true])
    #expect(try scene.scene.verdict(saved) == .intact)
    let left = try scene.items(saved)
    #expect(left.count == items.count)
    #expect(left.values.allSatisfy { $0.pieces.isEmpty && $0.owed.count == 1 })
  }

  @Test func `is forgotten, and compacting takes it out`() async throws {
    let scene = try ContextScene(likes: 40)
    try await scene.backUp()
    try scene.account.commit(StandInAccount.pointing(likes: 100..<101))
    try await scene.backUp()
    let piece = try #require(try scene.scene.snapshot(scene.path).contextBlocks().last)
    let result = try ContextRemoval.apply(to: FileStorage.open(scene.path), name: "a")
    #expect(result.snapshotCount == 3 && result.bytesAdded > 0)
    #expect(try scene.items().isEmpty && scene.scene.verdict(scene.path) == .intact)
    #expect(try ArchiveReader(path: scene.path).section(of: piece) != nil)
    _ = try ArchiveCopier(level: 3).compact(scene.path)
    #expect(try ArchiveReader(path: scene.path).section(of: piece) == nil)
    #expect(try scene.scene.verdict(scene.path) == .intact)
    #expect(try ContextRemoval.apply(to: FileStorage.open(scene.path), name: "a").bytesAdded == 0)
  }

  @Test func `stays with a backup that does not ask`() async throws {
    let scene = try ContextScene(likes: 5)
    try await scene.backUp()
    let items = try scene.items()
    try scene.account.commit(StandInAccount.pointing(likes: 100..<101))
    try await scene.scene.backUp(scene.account, into: "archive.car.zst")
    #expect(try scene.items() == items)
  }

  @Test func `keeps earlier pages as they are, and few of them`() async throws {
    let scene = try ContextScene(likes: 500)
    try await scene.backUp(.names)
    let first = try #require(try scene.pages().first)
    for run in 1...12 {
      try scene.account.commit(StandInAccount.pointing(likes: 1000 + run..<1001 + run))
      try await scene.backUp(.names)
    }
    let pages = try scene.pages()
    #expect(pages.contains(first) && pages.count <= 6, "\(pages.map(\.itemCount))")
    #expect(try scene.items().count == 512)
  }
}

@Suite struct `Blocks of a context` {
  private static let did: DID = try! DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz")

  private func block(_ value: IPLDValue) throws -> Block {
    let bytes = try DAGCBOREncoder.encode(value)
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  private static let item: IPLDMap = [
    "person": .string(StandInAccount.person(1)), "seenFrom": .string("https://x"),
    "seenAt": .string("2026-01-01T00:00:00Z"),
  ]

  @Test func `come back as they were`() throws {
    var context = Context(of: Self.did)
    context.pages = [Context.Page(CID.blob([1]), itemCount: 7)]
    (context.leftOutCount, context.pieceBytes) = (3, 4)
    #expect(try Context(context.block()) == context)
    var post = ContextItem.Post(cid: CID.blob([2]), record: "{}")
    post.thumbnails = [ContextItem.Thumbnail(CID.blob([3]), from: "https://y")]
    post.proof = ContextItem.Proof(car: CID.blob([4]), document: CID.blob([5]))
    post.unprovenAt = "w"
    var item = ContextItem(
      .post(try ATURI(StandInAccount.othersPost(1))), .post(post), from: "x", at: "y")
    item.askedAt = "z"
    item.owed = ["https://a", "https://b"]
    let page = try Context.page([item])
    #expect(try Context.items(on: page, Context.Page(page.cid, itemCount: 1)) == [item])
    #expect(try Context.piece(Context.piece([1, 2])) == [1, 2])
  }

  @Test func `are refused where a field has another form`() throws {
    let changes: [(String, IPLDValue?)] = [
      ("person", nil), ("person", .string("nobody")), ("post", .string("at://did:plc:x/y/z")),
      ("seenAt", nil), ("seenFrom", .integer(1)), ("handle", .string("not a handle")),
      ("displayName", .bytes([1])), ("avatar", .string("x")), ("absent", .boolean(true)),
      ("askedAt", .null), ("owed", .string("x")), ("owed", .array([.integer(1)])),
    ]
    for (key, value) in changes {
      var item = Self.item
      item[key] = value
      let page = try block(.map(["carpackContext": .array([.map(item)])]))
      #expect(throws: SnapshotError.malformedPage(page.cid), "\(key)") {
        try Context.items(on: page, Context.Page(page.cid, itemCount: 1))
      }
    }
    let good = try block(.map(["carpackContext": .array([.map(Self.item)])]))
    #expect(throws: SnapshotError.malformedPage(good.cid)) {
      try Context.items(on: good, Context.Page(good.cid, itemCount: 2))
    }
    #expect(throws: SnapshotError.malformedPage(good.cid)) { try Context(good) }
    #expect(throws: SnapshotError.malformedPage(good.cid)) { try Context.piece(good) }
  }

  @Test func `have no more items than a reader keeps subjects of`() throws {
    for counts in [[Context.maximumItems, 1], [Context.maximumItems + 1], [-1]] {
      let pages = counts.enumerated().map { index, count -> IPLDValue in
        .map(["page": .link(CID.blob([UInt8(index)])), "items": .integer(Int128(count))])
      }
      let list = try block(
        .map([
          "did": .string(Self.did.text),
          "carpackContext": .map(["pages": .array(pages), "pieceBytes": .integer(0)]),
        ]))
      #expect(throws: SnapshotError.malformedPage(list.cid)) { try Context(list) }
    }
  }
}
