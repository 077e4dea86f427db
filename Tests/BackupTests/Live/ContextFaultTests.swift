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

@Suite(.timeLimit(.minutes(10))) struct `An app view that is not what it should be` {
  @Test func `shows nothing of what it was not asked for`() async throws {
    let scene = try ContextScene(likes: 1)
    let (uri, other) = (StandInAccount.othersPost(0), StandInAccount.othersPost(50))
    func post(_ uri: String, by did: String) -> String {
      #"{"uri":"\#(uri)","cid":"\#(CID.blob([1]))","author":{"did":"\#(did)"},"record":{"text":"x"}}"#
    }
    scene.appView.behaviour.bodies[getPosts] =
      #"{"posts":[\#(post(other, by: StandInAccount.person(50))),\#(post(uri, by: StandInAccount.person(3))),"x",7]}"#
    scene.appView.behaviour.bodies[getProfiles] =
      #"{"profiles":[{"did":"\#(StandInAccount.person(50))"},{"did":"nonsense"}]}"#
    try await scene.backUp()
    let items = try scene.items()
    #expect(Set(items.keys) == [uri, StandInAccount.person(0)])
    #expect(items.values.allSatisfy { $0.content == .absent(.notFound) })
  }

  @Test(arguments: ["<html>", "{}", "[]", #"{"posts":7}"#, #"{"posts":[{"uri":"at://x"#, ""])
  func `costs the context alone`(_ body: String) async throws {
    let scene = try ContextScene(likes: 30)
    scene.appView.behaviour.bodies = [getPosts: body, getProfiles: body]
    let report = try await scene.backUp()
    #expect(report.outcome == .complete && report.context?.failures.isEmpty == false)
    #expect(try scene.items().isEmpty)
    #expect(try scene.scene.verdict(scene.path) == .intact)
  }

  @Test func `is not read to the end of an answer without one`() async throws {
    let scene = try ContextScene(likes: 30)
    let long = String(repeating: "x", count: 3 << 20)
    scene.appView.behaviour.bodies = [getPosts: #"{"posts":[],"x":"\#(long)"}"#]
    let report = try await scene.backUp()
    #expect(report.outcome == .complete && report.context?.failures.isEmpty == false)
  }

  @Test func `leads to no pictures but those over https or its own`() async throws {
    let scene = try ContextScene(likes: 3)
    scene.appView.behaviour.picture = "\(scene.scene.server.url)/img/secret.jpg"
    let report = try await scene.backUp()
    #expect(scene.scene.requestCount("secret.jpg") == 0)
    #expect(report.context?.thumbnailsMissing == 1 && report.context?.posts == 3)
    for url in ["file:///etc/passwd", "https://10.0.0.1/x.jpg", "https://169.254.169.254/x", "x"] {
      let scene = try ContextScene(likes: 1)
      scene.appView.behaviour.picture = url
      let report = try await scene.backUp()
      #expect(report.context?.thumbnails == 0 && report.context?.posts == 1, "\(url)")
    }
  }

  @Test func `gives nothing for a picture that is none`() async throws {
    let scene = try ContextScene(likes: 2)
    scene.appView.behaviour.pictureBytes = Array("<svg onload='alert(1)'/>".utf8)
    let report = try await scene.backUp()
    #expect(report.context?.thumbnails == 0 && report.context?.thumbnailsMissing == 4)
    #expect(report.warnings.contains { $0.hasSuffix("that could not be fetched: 4") })
  }

  @Test func `does not show those who ask not to be shown to everybody`() async throws {
    let scene = try ContextScene(likes: 2, follows: 5..<6)
    scene.appView.behaviour.withheld = [StandInAccount.person(1), StandInAccount.person(5)]
    try await scene.backUp()
    let items = try scene.items()
    for subject in [
      StandInAccount.person(1), StandInAccount.person(5), StandInAccount.othersPost(1),
    ] {
      #expect(items[subject]?.content == .absent(.withheld), "\(subject)")
    }
    #expect(items[StandInAccount.othersPost(0)]?.isAbsent == false)
  }

  @Test func `takes nothing away by not showing it any more`() async throws {
    let scene = try ContextScene(likes: 1, follows: 4..<6)
    try await scene.backUp()
    let person = StandInAccount.person(4)
    scene.appView.behaviour.absent = [person]
    scene.appView.behaviour.addition = ", later"
    scene.forgetLog()
    try await scene.backUp(at: "2026-01-20T00:00:00Z")
    #expect(scene.appView.server.log.isEmpty)
    // Names are requested again after 30 days, and posts never.
    try await scene.backUp(at: "2026-03-01T00:00:00Z")
    #expect(scene.appView.requestCount(getPosts) == 0)
    let items = try scene.items()
    guard case .person(let kept)? = items[person]?.content,
      case .person(let new)? = items[StandInAccount.person(5)]?.content
    else {
      Issue.record("no people")
      return
    }
    #expect(kept.displayName == "Somebody aaaaae")
    #expect(items[person]?.askedAt == "2026-03-01T00:00:00Z")
    #expect(new.displayName == "Somebody aaaaaf, later")
    // The picture comes from the same URL.
    #expect(new.avatar != nil && scene.appView.pictureCount == 0)
    scene.forgetLog()
    try await scene.backUp(at: "2026-03-02T00:00:00Z")
    #expect(scene.appView.server.log.isEmpty)
  }
}

@Suite(.timeLimit(.minutes(10))) struct `A context that is not what it should be` {
  @Test func `is damage where a page or a piece is not there`() async throws {
    let scene = try ContextScene(likes: 2)
    try await scene.backUp()
    let items = try Array(scene.items().values)
    try scene.forge(items) { $0.pages.append(Context.Page(CID.blob([1]), itemCount: 1)) }
    #expect(try scene.scene.verdict(scene.path) == .damaged)
    #expect(throws: SnapshotError.blockMissing(CID.blob([1]))) { try scene.items() }
    // The next backup asks for all of it.
    try await scene.backUp()
    #expect(try scene.items().count == 4)
    var item = try #require(items.first { !$0.pieces.isEmpty })
    if case .person(var person) = item.content {
      person.avatar = ContextItem.Thumbnail(CID.blob([2]), from: "https://x")
      item.content = .person(person)
    } else if case .post(var post) = item.content {
      post.thumbnails = [ContextItem.Thumbnail(CID.blob([2]), from: "https://x")]
      item.content = .post(post)
    }
    try scene.forge([item])
    #expect(try scene.scene.verdict(scene.path) == .damaged)
  }

  @Test func `is damage where it is another account's`() async throws {
    let scene = try ContextScene(likes: 2)
    try await scene.backUp()
    let other = try DID(StandInAccount.person(3))
    try scene.forge([], of: other)
    #expect(try scene.scene.verdict(scene.path) == .damaged)
    #expect(throws: SnapshotError.self) { try scene.items() }
  }
}
