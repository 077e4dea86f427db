import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

/// A server's list of blobs that does not come, or not to its end.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A list of blobs that fails` {
  /// What verbs say of the archive while the list is not whole.
  private static func expectGap(in scene: NetworkScene, transient: Bool) throws {
    for verb in ["missing", "verify"] {
      let result = try scene.command.run("carpack \(verb) \(NetworkScene.archive)")
      #expect(result.status == 10, "\(verb): \(result.text)\(result.errors)")
      let said = result.text + result.errors
      #expect(said.contains("the server's list of blobs is incomplete"), "\(verb): \(said)")
    }
    for verb in ["info", "log", "missing", "verify"] {
      let json = try scene.command.run("carpack \(verb) --json \(NetworkScene.archive)").text
      #expect(json.contains("\"listFault\""), "\(verb): \(json)")
      let words = json.filter { !$0.isWhitespace }
      #expect(words.contains("\"transient\":\(transient)"), "\(verb): \(json)")
      if verb == "info" || verb == "log" { #expect(words.contains("\"complete\":false")) }
    }
    let log = try scene.command.run("carpack log \(NetworkScene.archive)")
    #expect(log.text.contains("the list of blobs is incomplete"))
    let info = try scene.command.run("carpack info \(NetworkScene.archive)")
    #expect(info.text.contains("the server's list of blobs is incomplete"))
  }

  @Test(arguments: [
    (Fault.status(500), 75, true), (.dropped, 75, true), (.status(501), 10, false),
    (.page(status: 404), 10, false),
    (.captivePortal, 75, true),
  ])
  func `is a gap until it comes whole`(_ fault: Fault, _ status: Int, _ transient: Bool) throws {
    let scene = try NetworkScene(posts: 5, blobs: 3)
    scene.server.play(FaultRule(fault, on: "listBlobs"))
    let first = try scene.backUp("--attempts 2")
    #expect(first.status == status, "\(first.text)\(first.errors)")
    #expect(first.text.contains("incomplete"))
    try Self.expectGap(in: scene, transient: transient)
    // What is there is whole.
    #expect(try scene.contents(scene.account.did).blobs == scene.account.referencedBlobs)
    scene.server.clearFaults()
    let next = try scene.backUp()
    #expect(next.status == 0, "\(next.text)\(next.errors)")
    #expect(scene.requestCount(of: "getRepo") == 1)
    try scene.expectWhole()
    let missing = try scene.command.run("carpack missing \(NetworkScene.archive)")
    #expect(missing.status == 0, "\(missing.text)")
  }

  @Test func `is asked for again by fill`() throws {
    let scene = try NetworkScene(posts: 5, blobs: 3)
    scene.server.play(FaultRule(.status(503), on: "listBlobs"))
    #expect(try scene.backUp("--attempts 1").status == 75)
    let line = "carpack fill \(NetworkScene.archive) \(scene.flags) --attempts 1"
    #expect(try scene.command.run(line).status == 75)
    scene.server.clearFaults()
    let result = try scene.command.run(line)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
  }
}
