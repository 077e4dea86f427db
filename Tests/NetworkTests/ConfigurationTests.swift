import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A backup by the configuration` {
  /// Two accounts, and a configuration that reaches their server.
  private func scene(_ more: (NetworkScene) -> String) throws -> NetworkScene {
    let scene = try NetworkScene([
      StandInAccount("alice", posts: 3, blobs: 1), StandInAccount("bob", posts: 3, blobs: 1),
    ])
    try scene.command.configure(
      "[defaults]\nplc = '\(scene.server.url)'\nresolver = '\(scene.server.url)'\nattempts = 1\n"
        + more(scene))
    return scene
  }

  private func exists(_ scene: NetworkScene, _ path: String) -> Bool {
    FileManager.default.fileExists(atPath: scene.folder.file(path))
  }

  @Test func `backs up all accounts that are listed, each where it belongs`() throws {
    let scene = try scene { scene in
      """
      [backup]
      output = '\(scene.folder.path)/archives/'
      [[account]]
      name = '\(scene.accounts[0].did)'
      [[account]]
      name = '\(scene.accounts[1].did)'
      output = '\(scene.folder.path)/own.car.zst'
      """
    }
    let result = try scene.command.run("carpack backup")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("2 accounts: 2 complete"))
    try scene.expectWhole(scene.accounts[1], in: "own.car.zst")
    #expect(scene.folder.names(under: "archives").count == 1)
    let again = try scene.command.run("carpack backup --json")
    #expect(again.text.contains(#""upToDate":2"#))
  }

  @Test func `keeps the rules of an account that is named`() throws {
    let scene = try scene { scene in
      """
      [[account]]
      name = '\(scene.accounts[1].did)'
      output = '\(scene.folder.path)/own.car.zst'
      """
    }
    let result = try scene.command.run("carpack backup \(scene.accounts[1].did)")
    #expect(result.status == 0, "\(result.errors)")
    #expect(exists(scene, "own.car.zst"))
    let other = try scene.command.run("carpack backup \(scene.accounts[1].did) -o other.car.zst")
    #expect(other.status == 0, "\(other.errors)")
    #expect(exists(scene, "other.car.zst"))
    let one = try scene.command.run("carpack backup \(scene.accounts[0].did) -o alice.car.zst")
    #expect(one.status == 0, "\(one.errors)")
    #expect(scene.requestCount(of: "getRepo") == 3)
  }

  @Test func `takes accounts from a list, too`() throws {
    let scene = try scene { scene in
      "[backup]\naccounts = '\(scene.folder.path)/list'\noutput = '\(scene.folder.path)/all/'\n"
    }
    try scene.folder.write("list", Array(scene.accounts.map(\.did).joined(separator: "\n").utf8))
    let result = try scene.command.run("carpack backup")
    #expect(result.status == 0, "\(result.errors)")
    #expect(scene.folder.names(under: "all").count == 2)
    // What is named on the line is all that counts.
    let one = try scene.command.run("carpack backup \(scene.accounts[0].did)")
    #expect(!one.text.contains("2 accounts"))
  }

  @Test func `logs in where that is said, and fails for that account alone`() throws {
    let scene = try scene { scene in
      """
      [backup]
      output = '\(scene.folder.path)/all/'
      [[account]]
      name = '\(scene.accounts[0].did)'
      [[account]]
      name = '\(scene.accounts[1].did)'
      login = true
      password-file = '\(scene.folder.path)/password'
      """
    }
    scene.accounts[1].password = "horse-battery"
    scene.accounts[1].status = .deactivated
    let missing = try scene.command.run("carpack backup")
    #expect(missing.status == 66, "\(missing.errors)")
    #expect(missing.text.contains("1 complete, 1 failed"))
    try scene.folder.write("password", Array("horse-battery\n".utf8))
    let result = try scene.command.run("carpack backup")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(scene.requestCount(of: "createSession") == 1)
    try scene.command.configure(
      "[[account]]\nname = '\(scene.accounts[0].did)'\n[[account]]\nname = '\(scene.accounts[1].did)'\nlogin = true\n"
    )
    let several = try scene.command.run("carpack backup \(scene.flags) -o all/")
    #expect(several.status == 64)
    #expect(several.errors.contains("each login needs a password-file"))
  }

  @Test(arguments: ["", "--login --password-file password"])
  func `keeps what is the owner's alone where that is said`(_ typed: String) throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    scene.account.password = "horse-battery"
    scene.account.privatePages = [
      "app.bsky.actor.getPreferences": [#"{"preferences":["for-my-eyes"]}"#]
    ]
    try scene.folder.write("password", Array("horse-battery\n".utf8))
    try scene.command.configure(
      """
      [[account]]
      name = '\(scene.account.did)'
      login = true
      password-file = '\(scene.folder.path)/password'
      private = true
      """)
    let result = try scene.backUp("--attempts 1 \(typed)")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    let extracted = try scene.command.run(
      "carpack extract --private -d out \(NetworkScene.archive) && grep -rl for-my-eyes out")
    #expect(extracted.status == 0, "\(extracted.errors)")
  }

  @Test func `has what was typed before variables, and these before the file`() throws {
    let scene = try scene { _ in "" }
    try scene.command.configure(
      "[defaults]\nplc = 'http://127.0.0.1:1'\nresolver = '\(scene.server.url)'\nattempts = 1\n")
    let account = scene.accounts[0].did
    #expect(try scene.command.run("carpack resolve \(account)").status == 75)
    let variable = ["CARPACK_PLC_URL": scene.server.url]
    let set = try scene.command.start("carpack resolve \(account)", environment: variable).wait()
    #expect(set.status == 0, "\(set.errors)")
    let typed = try scene.command.run("carpack resolve \(account) --plc \(scene.server.url)")
    #expect(typed.status == 0, "\(typed.errors)")
    // A verb below another has the settings of the one above it.
    let below = try scene.command.run("carpack fetch latest \(account) --plc \(scene.server.url)")
    #expect(below.status == 0, "\(below.errors)")
    #expect(try scene.command.run("carpack fetch latest \(account)").status == 75)
  }
}
