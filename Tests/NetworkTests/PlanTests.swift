import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A backup that is only planned` {
  @Test func `says what it would do, and does nothing`() throws {
    let scene = try NetworkScene(posts: 5, blobs: 3)
    let plan = try scene.backUp("--dry-run")
    #expect(plan.status == 0, "\(plan.errors)")
    #expect(plan.text.contains("\(NetworkScene.archive): would be new"), "\(plan.text)")
    #expect(plan.text.contains("3 listed, 3 to fetch, of unknown size"))
    #expect(scene.folder.names().isEmpty)
    #expect(scene.requestCount(of: "getRepo") == 0)
    #expect(try scene.backUp().status == 0)
    let current = try scene.backUp("--dry-run")
    #expect(current.text.contains("\(NetworkScene.archive): nothing to fetch"), "\(current.text)")
    let again = try scene.backUp("--dry-run --json")
    #expect(again.status == 0)
    #expect(again.text.contains(#""event":"plan""#) && again.text.contains(#""unchanged""#))
    #expect(scene.requestCount(of: "getRepo") == 1)
    let fleet = try scene.command.run(
      "carpack backup \(scene.account.did) \(scene.account.handle) \(scene.flags) -o out/ --dry-run"
    )
    #expect(fleet.status == 0)
    #expect(fleet.text.hasSuffix("1 account: 1 planned\n"), "\(fleet.text)")
    #expect(scene.folder.names() == [NetworkScene.archive])
  }

  @Test func `is skipped without a request if it was done a short while ago`() throws {
    let scene = try NetworkScene(posts: 5, blobs: 3)
    #expect(try scene.backUp("--max-age 1h").status == 0)
    scene.server.server.forgetLog()
    let recent = try scene.backUp("--max-age 1h")
    #expect(recent.status == 0)
    #expect(recent.text.contains("recent, skipped"), "\(recent.text)")
    let json = try scene.backUp("--max-age 1h --json")
    #expect(json.text.contains(#""outcome":"recent""#))
    let plan = try scene.backUp("--max-age 1h --dry-run")
    #expect(plan.text.contains("no request is made"))
    #expect(scene.server.server.log.isEmpty)
  }

  @Test func `keeps the status of what is skipped`() throws {
    let scene = try NetworkScene(posts: 5, blobs: 3)
    let lost = try #require(scene.account.blobs.keys.first)
    scene.account.lose(lost)
    #expect(try scene.backUp().status == 10)
    scene.server.server.forgetLog()
    let recent = try scene.backUp("--max-age 7d")
    #expect(recent.status == 10)
    #expect(recent.text.contains("incomplete"))
    #expect(scene.server.server.log.isEmpty)
  }
}
