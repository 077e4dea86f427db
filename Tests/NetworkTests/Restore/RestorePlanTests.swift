import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A plan of a restore` {
  @Test func `refuses the server on which the account lives, as the restore does`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    let account = scene.account
    try account.commit([account.post("3lkxag2qhdc2b", "later")])
    let line = "carpack restore \(RestoreScene.archive) --to \(scene.old.url) \(scene.flags)"
    let login = "--login --password-file old"
    for line in ["\(line) --plan", "\(line) --plan \(login)", "\(line) \(login)"] {
      let result = try scene.command.run(line)
      #expect(result.status == 13, "\(line): \(result.text)\(result.errors)")
      #expect((result.text + result.errors).contains("the account is on \(scene.old.url) already"))
      #expect(!result.text.contains("nothing left to do"), "\(result.text)")
    }
  }

  @Test func `sends no blobs that a rehearsal has sent`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    let line = "\(RestoreScene.archive) --to \(scene.new.url) \(scene.flags)"
    let login = "--login --password-file old --new-password-file new"
    let before = try scene.command.run("carpack restore \(line) --plan")
    #expect(before.text.contains("10 to send"), "\(before.text)\(before.errors)")
    #expect(!before.errors.contains("may refuse the repository"), "\(before.errors)")
    let rehearsed = try scene.command.run("carpack rehearse \(line) \(login) --yes")
    #expect(rehearsed.status == 0, "\(rehearsed.text)\(rehearsed.errors)")
    let plan = try scene.command.run("carpack restore \(line) --plan")
    #expect(plan.text.contains("0 to send"), "\(plan.text)\(plan.errors)")
  }

  @Test func `asks for no code by mail where a key signs, and says if a password is wrong`() throws
  {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    #expect(try scene.restore("--plan").text.contains("by mail"))
    let plan = try scene.restore("--recovery-key recovery.key --plan")
    #expect(plan.status == 0 && !plan.text.contains("by mail"), "\(plan.text)\(plan.errors)")
    try scene.folder.write("old", Array("a wrong password\n".utf8))
    let wrong = try scene.restore("--plan")
    #expect(wrong.status == 77, "\(wrong.text)\(wrong.errors)")
  }
}
