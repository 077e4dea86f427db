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

@Suite(.timeLimit(.minutes(10))) struct `What an app view shows of others` {
  @Test func `is kept with a backup, and the next asks only for what is new`() async throws {
    let scene = try ContextScene(likes: 60, follows: 100..<130)
    let report = try await scene.backUp()
    #expect(report.outcome == .complete && report.warnings.isEmpty, "\(report.warnings)")
    #expect(report.context?.posts == 60 && report.context?.people == 90)
    #expect(scene.appView.requestCount(getPosts) == 3)
    #expect(scene.appView.requestCount(getProfiles) == 2)
    let items = try scene.items()
    #expect(items.count == 150)
    let uri = StandInAccount.othersPost(7)
    guard case .post(let post)? = items[uri]?.content else { Issue.record("no post"); return }
    #expect(post.record.contains("What \(uri.suffix(13)) says"))
    let snapshot = try scene.scene.snapshot(scene.path)
    #expect(
      try snapshot.contextPiece(#require(post.thumbnails.first).piece).prefix(3) == [
        0xff, 0xd8, 0xff,
      ])
    guard case .person(let person)? = items[StandInAccount.person(100)]?.content else {
      Issue.record("no person")
      return
    }
    #expect(person.displayName == "Somebody aaaade" && person.avatar != nil)
    #expect(person.description == "I am aaaade")
    #expect(items[uri]?.seenFrom == scene.appView.url)
    #expect(try scene.scene.verdict(scene.path) == .intact)

    scene.forgetLog()
    let same = try await scene.backUp()
    #expect(same.outcome == .upToDate && scene.appView.server.log.isEmpty)

    try scene.account.commit(StandInAccount.pointing(likes: 200..<203))
    let pages = try scene.pages()
    let more = try await scene.backUp()
    #expect(scene.appView.asked(getPosts).count == 3 && scene.appView.asked(getProfiles).isEmpty)
    #expect(try scene.items().count == 156)
    #expect(more.bytesAdded < 20_000)
    #expect(try scene.pages().count <= pages.count + 1)
    #expect(try scene.scene.verdict(scene.path) == .intact)
  }

  @Test func `is names alone if that is what is wanted`() async throws {
    let scene = try ContextScene(likes: 30)
    try await scene.backUp(.names)
    #expect(scene.appView.requestCount(getPosts) == 0 && scene.appView.pictureCount == 0)
    let items = try scene.items()
    #expect(items.count == 30 && items[StandInAccount.person(3)] != nil)
  }

  @Test func `costs nothing else when the app view is away, and is asked for again`() async throws {
    let scene = try ContextScene(likes: 60)
    scene.appView.behaviour.status = 503
    let report = try await scene.backUp()
    #expect(report.outcome == .complete)
    #expect(report.warnings.contains { $0.contains("the context is incomplete") })
    #expect(scene.appView.requestCount(getPosts) <= 8)
    #expect(try scene.items().isEmpty)
    scene.appView.behaviour.status = nil
    try await scene.backUp()
    #expect(try scene.items().count == 120)
  }

  @Test func `is asked for pictures that names alone left out, and for nothing else`() async throws
  {
    let scene = try ContextScene(follows: 0..<30)
    try await scene.backUp(.names)
    scene.forgetLog()
    let report = try await scene.backUp()
    #expect(report.context?.thumbnails == 30)
    #expect(scene.appView.pictureCount == 30 && scene.appView.server.log.count == 30)
    for item in try scene.items().values {
      guard case .person(let person) = item.content else { continue }
      #expect(person.avatar != nil && item.owed.isEmpty)
    }
    scene.forgetLog()
    try await scene.backUp()
    // Those who only want names now lose no pictures.
    try await scene.backUp(.names)
    #expect(scene.appView.server.log.isEmpty)
    #expect(try scene.scene.verdict(scene.path) == .intact)
  }

  @Test(arguments: [(503, true), (429, true), (404, false), (403, false)])
  func `is asked again for pictures that may come`(_ status: Int, _ mayCome: Bool) async throws {
    let scene = try ContextScene(likes: 3)
    scene.appView.behaviour.pictureStatus = status
    let report = try await scene.backUp()
    #expect(report.outcome == .complete && report.context?.thumbnailsMissing == 6)
    #expect(try scene.items().values.filter { !$0.owed.isEmpty }.count == (mayCome ? 6 : 0))
    scene.appView.behaviour.pictureStatus = nil
    scene.forgetLog()
    let more = try await scene.backUp()
    #expect(scene.appView.pictureCount == (mayCome ? 6 : 0))
    #expect(more.context?.thumbnails == (mayCome ? 6 : 0))
    #expect(scene.appView.requestCount(getPosts) == 0)
    guard case .post(let post)? = try scene.items()[StandInAccount.othersPost(1)]?.content else {
      Issue.record("no post")
      return
    }
    #expect(post.thumbnails.count == (mayCome ? 1 : 0))
    #expect(try scene.scene.verdict(scene.path) == .intact)
  }

  @Test func `that is slow ends with its time, and what had come is kept`() async throws {
    let scene = try ContextScene(likes: 300)
    scene.appView.behaviour.latency = 0.5
    let report = try await scene.backUp { $0.time = .seconds(3) }
    #expect(report.outcome == .complete)
    #expect(report.warnings.contains { $0.contains("it took too long") }, "\(report.warnings)")
    scene.appView.behaviour.latency = 0
    let before = scene.appView.asked(getPosts).count
    try await scene.backUp()
    #expect(try scene.items().count == 600)
    #expect(scene.appView.asked(getPosts).count < before + 300)
  }

  @Test func `takes few requests for 5,000 likes and 800 follows`() async throws {
    let scene = try ContextScene(likes: 5000, follows: 6000..<6800)
    let report = try await scene.backUp(rate: 100_000)
    #expect(report.outcome == .complete && report.warnings.isEmpty, "\(report.warnings)")
    #expect(scene.appView.requestCount(getPosts) == 200)
    #expect(scene.appView.requestCount(getProfiles) == 32)
    #expect(try scene.items().count == 10_800)
    scene.forgetLog()
    try await scene.backUp(rate: 100_000)
    #expect(scene.appView.server.log.isEmpty)
  }

  @Test func `does not leave the account's own out of sight`() async throws {
    let scene = try ContextScene()
    let own = "at://\(scene.account.did)/app.bsky.feed.post/3lzy2ji4nms2z"
    try scene.account.commit([
      .put(
        path: "app.bsky.feed.like/3lzy2ji4nms2z",
        record: [
          "$type": .string("app.bsky.feed.like"), "createdAt": .string("2025-01-01T00:00:00Z"),
          "subject": .map(["uri": .string(own), "cid": .string("\(CID.blob([1]))")]),
        ])
    ])
    try await scene.backUp()
    #expect(scene.appView.server.log.isEmpty)
  }

  @Test func `takes quotes, replies and mentions for what they point to`() async throws {
    let scene = try ContextScene()
    let uris = (1...4).map { StandInAccount.othersPost($0) }
    func reference(_ uri: String) -> IPLDValue {
      .map(["uri": .string(uri), "cid": .string("\(CID.blob([1]))")])
    }
    func post(_ more: IPLDMap) -> IPLDMap {
      var record: IPLDMap = [
        "$type": .string("app.bsky.feed.post"), "text": .string(""),
        "createdAt": .string("2025-01-01T00:00:00Z"),
      ]
      for entry in more.entries { record[entry.key] = entry.value }
      return record
    }
    let mention: IPLDValue = .map([
      "features": .array([
        .map([
          "$type": .string("app.bsky.richtext.facet#mention"),
          "did": .string(StandInAccount.person(9)),
        ])
      ])
    ])
    try scene.account.commit([
      .put(
        path: "app.bsky.feed.post/3lzy2ji4nms2a",
        record: post([
          "reply": .map(["parent": reference(uris[0]), "root": reference(uris[1])]),
          "facets": .array([mention]),
        ])),
      .put(
        path: "app.bsky.feed.post/3lzy2ji4nms2b",
        record: post([
          "embed": .map([
            "$type": .string("app.bsky.embed.record"), "record": reference(uris[2]),
          ])
        ])),
      .put(
        path: "app.bsky.feed.post/3lzy2ji4nms2c",
        record: post([
          "embed": .map([
            "$type": .string("app.bsky.embed.recordWithMedia"),
            "record": .map(["record": reference(uris[3])]),
          ])
        ])),
    ])
    try await scene.backUp()
    #expect(Set(scene.appView.asked(getPosts)) == Set(uris))
    #expect(scene.appView.asked(getProfiles) == [StandInAccount.person(9)])
  }
}
