import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Moving an account` {
  @Test func `from a server that lives to another takes everything along`() throws {
    let scene = try RestoreScene(large: [3_000_000])
    try scene.backUp()
    let before = try scene.operation()
    let first = try scene.restore()
    #expect(first.status == 10, "\(first.text)\(first.errors)")
    #expect(first.errors.contains("--mail-code"))
    #expect(scene.account.mailCount == 1)
    try scene.expectMoved(isActive: false)
    #expect(scene.directory.operations(of: scene.account.did).count == 2)

    let code = try #require(scene.account.mailCode)
    let second = try scene.restore("--mail-code \(code)")
    #expect(second.status == 10, "\(second.text)\(second.errors)")
    #expect(second.errors.contains("--yes identity"))
    #expect(scene.directory.operations(of: scene.account.did).count == 2)

    let third = try scene.restore(
      "--verbose \(RestoreScene.agreed) --deactivate-old --yes deactivate-old")
    #expect(third.status == 0, "\(third.text)\(third.errors)")
    try scene.expectMoved()
    #expect(scene.account.status == .deactivated)
    #expect(scene.account.mailCount == 1)
    let after = try scene.operation()
    #expect(after["services"]?["atproto_pds"]?["endpoint"] == .string(scene.new.url))
    #expect(after["alsoKnownAs"]?.array == [.string("at://somebody.new.example")])
    // The new server's key first, and the old server's is still there.
    #expect(
      after["rotationKeys"]?.array?.dropFirst() == before["rotationKeys"]?.array.map { $0[...] })
    for result in [first, second, third] { try scene.expectNoSecret(in: result) }

    let again = try scene.restore(RestoreScene.agreed)
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    #expect(scene.calls(of: "importRepo") == 1)
  }

  @Test
  func `says whose signature the new server gives out, and has it sign where that is agreed to`()
    throws
  {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    let line =
      "--recovery-key recovery.key --email new@example.com --attempts 1 \(RestoreScene.agreed)"
    let former = "signature: of a key that the DID no longer names"
    let first = try scene.restore(line, login: false)
    #expect(first.status == 0 && first.text.contains(former), "\(first.text)\(first.errors)")
    #expect(!first.errors.contains("signed with the account's key"), "\(first.errors)")
    let second = try scene.restore("\(line) --yes sign", login: false)
    #expect(second.status == 0 && !second.text.contains(former), "\(second.text)\(second.errors)")
    let moved = try #require(scene.moved)
    #expect(moved.paths == scene.account.paths && moved.head != scene.account.head)
    let keys = try DIDDocument(Array(scene.new.documentText(of: moved).utf8).span)
    let key = try #require(keys.signingKey)
    let archive = "signed.car.zst"
    let flags = "--plc \(scene.directory.url) --resolver \(scene.new.url)"
    let backup = try scene.command.run("carpack backup \(scene.account.did) \(flags) -o \(archive)")
    #expect(backup.status == 0, "\(backup.text)\(backup.errors)")
    let verified = try scene.command.run("carpack verify --key \(key.didKey) \(archive)")
    #expect(verified.status == 0, "\(verified.text)\(verified.errors)")
  }

  @Test func `from a server that is gone takes a key of one's own`() throws {
    let scene = try RestoreScene()
    let key = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    let line = "--recovery-key recovery.key --email new@example.com --attempts 1"
    let first = try scene.restore(line, login: false)
    #expect(first.status == 10, "\(first.text)\(first.errors)")
    #expect(first.errors.contains("--yes identity"))
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    let result = try scene.restore("\(line) \(RestoreScene.agreed)", login: false)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectMoved()
    let keys = try scene.operation()["rotationKeys"]?.array?.compactMap(\.string) ?? []
    #expect(keys.count == 3)
    #expect(keys.first == key)
    #expect(keys[1] == "did:key:" + scene.new.rotationKey.multikey)
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
    try scene.expectNoSecret(in: result)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-key.pem") })
  }
}
