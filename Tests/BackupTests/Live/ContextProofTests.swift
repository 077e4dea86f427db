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

@Suite(.timeLimit(.minutes(10))) struct `Proofs of what others said` {
  /// Alice likes a post of Bob's, whom the same server has.
  private static func scene() throws -> (ContextScene, bob: StandInAccount, uri: String) {
    let bob = try StandInAccount("bob", posts: 3)
    let scene = try ContextScene(likes: 1, others: [bob])
    let path = try #require(bob.paths.first { $0.hasPrefix("app.bsky.feed.post/") })
    let uri = "at://\(bob.did)/\(path)"
    try scene.account.commit([
      .put(
        path: "app.bsky.feed.like/3lzy2ji4nms2z",
        record: [
          "$type": .string("app.bsky.feed.like"), "createdAt": .string("2025-01-01T00:00:00Z"),
          "subject": .map(["uri": .string(uri), "cid": .string("\(CID.blob([1]))")]),
        ])
    ])
    scene.appView.behaviour.records[uri] = try #require(bob.record(path)?.map)
    return (scene, bob, uri)
  }

  private func post(_ scene: ContextScene, _ uri: String) throws -> ContextItem.Post? {
    guard case .post(let post)? = try scene.items()[uri]?.content else { return nil }
    return post
  }

  @Test func `come from the author's server, and verify checks them`() async throws {
    let (scene, _, uri) = try Self.scene()
    let report = try await scene.backUp(.signed)
    #expect(report.context?.proofs == 1 && report.context?.unproven == 1)
    #expect(report.outcome == .complete)
    let post = try #require(try post(scene, uri))
    let snapshot = try scene.scene.snapshot(scene.path)
    let proof = try #require(try snapshot.proof(of: post))
    #expect(try proof.fault(of: post, at: ATURI(uri)) == nil)
    #expect(try scene.scene.verdict(scene.path) == .intact)
    // What does not come is requested again, and not every time.
    let count = scene.scene.requestCount("sync.getRecord")
    try await scene.backUp(.signed)
    #expect(scene.scene.requestCount("sync.getRecord") == count)
  }

  @Test func `cost one server no more than its budget`() async throws {
    let (scene, bob, _) = try Self.scene()
    for (number, path) in bob.paths.filter({ $0.hasPrefix("app.bsky.feed.post/") }).enumerated() {
      try scene.account.commit([
        .put(
          path: "app.bsky.feed.repost/3lzy2ji4nms3\(["a", "b", "c"][number])",
          record: [
            "$type": .string("app.bsky.feed.repost"), "createdAt": .string("2025-01-01T00:00:00Z"),
            "subject": .map([
              "uri": .string("at://\(bob.did)/\(path)"), "cid": .string("\(CID.blob([1]))"),
            ]),
          ])
      ])
      scene.appView.behaviour.records["at://\(bob.did)/\(path)"] = try #require(
        bob.record(path)?.map)
    }
    let report = try await scene.backUp(.signed) { $0.proofsOfHost = 2 }
    #expect(scene.scene.requestCount("sync.getRecord") == 2)
    #expect(report.context?.proofs == 2 && report.context?.proofsLeftOut == 1)
    #expect(report.outcome == .complete)
    // One request to the directory for each author.
    #expect(scene.scene.requestCount("/\(bob.did)") <= 1)
  }

  @Test func `are added to what the archive has`() async throws {
    let (scene, _, uri) = try Self.scene()
    try await scene.backUp(.posts)
    #expect(try post(scene, uri)?.proof == nil)
    scene.forgetLog()
    try await scene.backUp(.signed)
    #expect(scene.appView.server.log.isEmpty)
    #expect(try post(scene, uri)?.proof != nil)
    #expect(try scene.scene.verdict(scene.path) == .intact)
  }

  @Test func `are not taken for another text, key or record`() async throws {
    let (scene, bob, uri) = try Self.scene()
    scene.appView.behaviour.records[uri]?["text"] = .string("Bob never said this")
    try await scene.backUp(.signed)
    #expect(try post(scene, uri)?.proof == nil)
    let (other, alike, address) = try Self.scene()
    other.scene.server.setDocument(
      other.scene.server.documentText(of: alike).replacing(
        alike.key.multikey,
        with: bob.key.multikey == alike.key.multikey
          ? SigningKey(seed: "another").multikey : bob.key.multikey), for: alike.did)
    try await other.backUp(.signed)
    #expect(try post(other, address)?.proof == nil)
  }

  @Test func `fail where the document or the CAR is another's`() async throws {
    let (scene, bob, uri) = try Self.scene()
    let post = ContextItem.Post(cid: CID.blob([1]), record: "{}")
    let document = Array(scene.scene.server.documentText(of: bob).utf8)
    let strange = try ATURI(StandInAccount.othersPost(3))
    let own = try ATURI(uri)
    let wrong: [(car: [UInt8], document: [UInt8], uri: ATURI)] = [
      ([], document, own), ([1, 2], document, own), ([], [], strange), ([], document, strange),
    ]
    for (car, document, uri) in wrong {
      #expect(ContextProof(car: car, document: document).fault(of: post, at: uri) != nil)
    }
  }

  @Test func `are named by verify if they do not hold`() async throws {
    let (scene, _, uri) = try Self.scene()
    try await scene.backUp(.signed)
    var item = try #require(try scene.items()[uri])
    guard case .post(var post) = item.content else { return }
    post.record = #"{"text":"Bob never said this"}"#
    item.content = .post(post)
    try scene.forge([item])
    let report = try SnapshotVerifier().verify(ArchiveReader(path: scene.path), .full)
    #expect(report.verdict == .damaged)
    #expect(
      report.damage.contains { $0.contains("the proof of \(uri) is not valid") },
      "\(report.damage)")
  }
}
