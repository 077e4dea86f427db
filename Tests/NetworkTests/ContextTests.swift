import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Keeping what others said` {
  /// An account that likes three posts and follows two people.
  private static func scene() throws -> (NetworkScene, StandInAppView) {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    try scene.account.commit(StandInAccount.pointing(likes: 0..<3, follows: 10..<12))
    return (scene, try StandInAppView())
  }

  private func backUp(
    _ scene: NetworkScene, _ appView: StandInAppView, _ more: String = "--context"
  )
    throws -> Command.Result
  {
    try scene.backUp("--app-view \(appView.url) --attempts 1 \(more)")
  }

  @Test func `says what came, and gives it back marked as others'`() throws {
    let (scene, appView) = try Self.scene()
    let plan = try backUp(scene, appView, "--context --dry-run")
    #expect(
      plan.text.contains("context: new items are requested from \(appView.url)"), "\(plan.text)")
    #expect(appView.server.log.isEmpty)
    let result = try backUp(scene, appView)
    #expect(result.status == 0, "\(result.errors)")
    #expect(
      result.text.contains("context: 5 people, 3 posts and 8 thumbnails of others are new"),
      "\(result.text)")
    try scene.expectWhole()
    let info = try scene.command.run("carpack info \(NetworkScene.archive)")
    #expect(info.text.contains("8 items of others"), "\(info.text)")
    let listed = try scene.command.run("carpack ls --context \(NetworkScene.archive)")
    let lines = listed.text.split(separator: "\n")
    #expect(lines.count == 8 && lines.allSatisfy { $0.contains("(another's, seen 20") })
    #expect(lines.contains { $0.hasPrefix(StandInAccount.othersPost(1)) }, "\(listed.text)")
    let json = try scene.command.run("carpack ls --context --json \(NetworkScene.archive)")
    #expect(OutputSchema.faults(in: json.text).isEmpty, "\(OutputSchema.faults(in: json.text))")
    let found = try scene.command.run("carpack find --context aaaaak \(NetworkScene.archive)")
    #expect(found.status == 0 && found.text.contains("Somebody aaaaak"), "\(found.text)")
    #expect(try scene.command.run("carpack find aaaaak \(NetworkScene.archive)").status == 0)
  }

  @Test func `extracts it if it is asked for by name alone`() throws {
    let (scene, appView) = try Self.scene()
    #expect(try backUp(scene, appView).status == 0)
    let all = try scene.command.run("carpack extract --all -d all \(NetworkScene.archive)")
    #expect(all.status == 0)
    #expect(scene.folder.names(under: "all").allSatisfy { !$0.contains("/context/") })
    let result = try scene.command.run("carpack extract --context -d some \(NetworkScene.archive)")
    #expect(result.status == 0, "\(result.errors)")
    let folder = "some/\(scene.account.did)/context"
    struct Person: Decodable {
      let person: String
      let displayName: String
      let avatar: String
    }
    let people = try JSONDecoder().decode(
      [Person].self, from: Data(scene.folder.read("\(folder)/people.json")))
    #expect(people.count == 5)
    for person in people {
      #expect(try scene.folder.read("\(folder)/\(person.avatar)").prefix(2) == [0xff, 0xd8])
    }
    struct Post: Decodable {
      let post: String
      let signed: Bool
      let thumbnails: [String]
    }
    let posts = try JSONDecoder().decode(
      [Post].self, from: Data(scene.folder.read("\(folder)/posts.json")))
    #expect(Set(posts.map(\.post)) == Set((0..<3).map { StandInAccount.othersPost($0) }))
    let again = try scene.command.run("carpack extract --context -d some \(NetworkScene.archive)")
    #expect(again.status == 0 && again.errors.contains("0 files written"), "\(again.errors)")
  }

  @Test func `costs nothing when the app view is away`() throws {
    let (scene, appView) = try Self.scene()
    appView.server.stop()
    let result = try backUp(scene, appView)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("the context is incomplete"), "\(result.errors)")
    let json = try backUp(scene, appView, "--context --json")
    #expect(json.status == 0 && OutputSchema.faults(in: json.text).isEmpty)
    #expect(json.text.contains(#""failures":["#), "\(json.text)")
    try scene.expectWhole()
  }

  @Test func `is asked for when the account itself is safe, and waited for no longer than minutes`()
    throws
  {
    let (scene, appView) = try Self.scene()
    appView.behaviour.retryAfter = 3600
    let result = try backUp(scene, appView)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("the context is incomplete"), "\(result.errors)")
    try scene.expectWhole()
    appView.behaviour.retryAfter = nil
    let more = try backUp(scene, appView)
    #expect(more.status == 0 && more.text.contains("5 people"), "\(more.text)")
    try scene.expectWhole()
  }

  @Test func `is not asked for unless that is said`() throws {
    let (scene, appView) = try Self.scene()
    #expect(try backUp(scene, appView, "").status == 0)
    #expect(appView.server.log.isEmpty)
    #expect(try backUp(scene, appView, "--no-context").status == 0)
    #expect(appView.server.log.isEmpty)
    #expect(try backUp(scene, appView, "--context names").status == 0)
    #expect(appView.requestCount("app.bsky.feed.getPosts") == 0)
    #expect(appView.requestCount("app.bsky.actor.getProfiles") == 1)
    #expect(try backUp(scene, appView, "--context=nothing").status == 64)
    #expect(try backUp(scene, appView, "--context --context-limit 0").status == 64)
  }

  @Test func `is asked for where the configuration says so`() throws {
    let (scene, appView) = try Self.scene()
    try scene.command.configure("[backup]\ncontext = 'names'\napp-view = '\(appView.url)'\n")
    #expect(try scene.backUp("--attempts 1 --no-context").status == 0)
    #expect(appView.server.log.isEmpty)
    let result = try scene.backUp("--attempts 1")
    #expect(result.status == 0, "\(result.errors)")
    #expect(appView.requestCount("app.bsky.actor.getProfiles") == 1)
    #expect(appView.requestCount("app.bsky.feed.getPosts") == 0)
    // The command line has the last word.
    #expect(try scene.backUp("--attempts 1 --context").status == 0)
    #expect(appView.requestCount("app.bsky.feed.getPosts") == 1)
  }

  @Test func `is forgotten, and gone from the file after compacting`() throws {
    let (scene, appView) = try Self.scene()
    #expect(try backUp(scene, appView).status == 0)
    let result = try scene.command.run("carpack forget-context \(NetworkScene.archive)")
    #expect(result.status == 0 && result.errors.contains("context forgotten in 1 snapshot"))
    #expect(try scene.command.run("carpack ls --context \(NetworkScene.archive)").text.isEmpty)
    #expect(try scene.command.run("carpack compact \(NetworkScene.archive)").status == 0)
    let file = String(decoding: try scene.folder.read(NetworkScene.archive), as: UTF8.self)
    #expect(!file.contains("carpackContext"))
    try scene.expectWhole()
    let none = try scene.command.run("carpack forget-context --json \(NetworkScene.archive)")
    #expect(none.status == 0 && OutputSchema.faults(in: none.text).isEmpty)
    #expect(none.text.contains(#""snapshots":0"#))
  }

  @Test func `shows names and posts on the pages of an export`() throws {
    let (scene, appView) = try Self.scene()
    #expect(try backUp(scene, appView).status == 0)
    let result = try scene.command.run("carpack export --html pages \(NetworkScene.archive)")
    #expect(result.status == 0, "\(result.errors)")
    let pages = try scene.folder.names(under: "pages").filter { $0.hasSuffix(".html") }
      .map { String(decoding: try scene.folder.read("pages/\($0)"), as: UTF8.self) }.joined()
    #expect(pages.contains("What \(StandInAccount.othersPost(1).suffix(13)) says"))
    #expect(pages.contains("a post of Somebody") && pages.contains("another’s words"))
  }

  @Test(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
  func `is passed over by a reader that knows nothing of it`() throws {
    let (scene, appView) = try Self.scene()
    #expect(try backUp(scene, appView).status == 0)
    let archive = scene.folder.file(NetworkScene.archive)
    for command in ["verify", "list", "snapshot", "missing"] {
      let result = try IndependentReader.run([command, archive])
      #expect(result.status == 0, "\(command)")
    }
  }
}
