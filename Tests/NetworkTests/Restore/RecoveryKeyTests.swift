import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A key of one's own` {
  @Test func `is added by the server, in front of all others, and checked`() throws {
    let scene = try RestoreScene()
    let did = scene.account.did
    let made = try scene.command.run("carpack recovery-key new -o own.key")
    #expect(made.status == 0, "\(made.errors)")
    let key = try #require(made.text.split(separator: "\n").first)
    let mode =
      try FileManager.default.attributesOfItem(atPath: scene.folder.file("own.key"))[
        .posixPermissions] as? Int
    #expect(mode == 0o600)
    let again = try scene.command.run("carpack recovery-key new -o own.key")
    #expect(again.status == 73, "\(again.errors)")
    let check = "carpack recovery-key check own.key \(did) \(scene.flags)"
    #expect(try scene.command.run(check).status == 10)

    let line = "carpack recovery-key add own.key \(did) --login --password-file old \(scene.flags)"
    let asked = try scene.command.run(line)
    #expect(asked.status == 10, "\(asked.text)\(asked.errors)")
    #expect(asked.errors.contains("to continue: \(line) --yes identity"))
    #expect(scene.account.mailCount == 0)
    #expect(try scene.command.run("\(line) --yes identity").status == 10)
    let code = try #require(scene.account.mailCode)
    // Without an agreement the code is not used up.
    let unsent = try scene.command.run("\(line) --mail-code \(code)")
    #expect(unsent.status == 10, "\(unsent.text)\(unsent.errors)")
    #expect(scene.directory.operations(of: did).count == 2)
    // What was signed is kept until it is sent.
    scene.directory.play(.fails)
    let failed = try scene.command.run("\(line) --mail-code \(code) --yes identity")
    #expect(failed.status == 75, "\(failed.text)\(failed.errors)")
    let sent = try scene.command.run("\(line) --yes identity")
    #expect(sent.status == 0, "\(sent.text)\(sent.errors)")
    #expect(sent.errors.contains("+ rotation key \(key)"))
    let checked = try scene.command.run(check)
    #expect(checked.status == 0)
    #expect(checked.text.contains("rotation key 1 of 2"))
    #expect(scene.account.mailCount == 1)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix(".operation.json") })
    // Once more, nothing is sent.
    #expect(try scene.command.run("\(line) --yes identity").status == 0)
    #expect(scene.directory.operations(of: did).count == 3)
  }

  @Test func `is kept encrypted, or as goat prints it, and not where others can read it`() throws {
    let scene = try RestoreScene()
    let environment = ["CARPACK_KEY_PASSPHRASE": "correct horse"]
    func run(_ line: String, _ environment: [String: String] = [:]) throws -> Command.Result {
      try scene.command.start(line, environment: environment).wait()
    }
    let made = try run("carpack recovery-key new -o own.key --encrypt", environment)
    #expect(made.status == 0, "\(made.errors)")
    let key = try #require(made.text.split(separator: "\n").first.map(String.init))
    try scene.directory.addRotationKey(
      key, of: scene.account.did, signedBy: scene.account.rotation)
    let check = "carpack recovery-key check own.key \(scene.account.did) \(scene.flags)"
    #expect(try run(check, environment).status == 0)
    let unlocked = try run(check)
    #expect(unlocked.status == 64, "\(unlocked.errors)")
    #expect(try run(check, ["CARPACK_KEY_PASSPHRASE": "wrong"]).status == 77)
    let line = try run("carpack recovery-key new -o line.key --multikey")
    #expect(line.status == 0)
    let text = String(decoding: try scene.folder.read("line.key"), as: UTF8.self)
    #expect(text.contains("\nz3vL"))
    #expect(!(line.text + line.errors).contains("z3vL"))
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: scene.folder.file("line.key"))
    let open = try run("carpack recovery-key check line.key \(scene.account.did) \(scene.flags)")
    #expect(open.status == 13, "\(open.errors)")
  }
}
