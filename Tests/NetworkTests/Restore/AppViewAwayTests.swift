import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An app view that is away` {
  @Test func `costs a backup what it answers, and nothing else`() throws {
    let scene = try RestoreScene()
    scene.account.privatePages = ["app.bsky.actor.getPreferences": [#"{"preferences":[]}"#]]
    scene.old.behaviour.appViewIsAway = true
    let result = try scene.command.run(
      "carpack backup \(scene.account.did) \(scene.flags) -o \(RestoreScene.archive) --login --password-file old --private --attempts 2"
    )
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("getMutes"))
    let verified = try scene.command.run("carpack verify \(RestoreScene.archive)")
    #expect(verified.status == 0, "\(verified.text)\(verified.errors)")
    // What came is put back.
    scene.new.play(FaultRule(.status(502), on: "putPreferences"))
    let restored = try scene.restore()
    #expect(restored.status == 10, "\(restored.text)\(restored.errors)")
    let code = try #require(scene.account.mailCode)
    let end = try scene.restore("--mail-code \(code) \(RestoreScene.agreed)")
    #expect(end.status == 10, "\(end.text)\(end.errors)")
    #expect(end.text.contains("the account lacks: the preferences"))
    try scene.expectMoved()
  }
}
