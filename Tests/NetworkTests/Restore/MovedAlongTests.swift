import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `What moves with an account` {
  private static let preferences =
    #"{"preferences":[{"$type":"app.bsky.actor.defs#adultContentPref","enabled":false}]}"#

  @Test func `are preferences, other servers, names and keys`() throws {
    let scene = try RestoreScene()
    scene.account.privatePages = ["app.bsky.actor.getPreferences": [Self.preferences]]
    let did = scene.account.did
    let key = try scene.addRecoveryKey()
    // What another tool has added.
    var operation = try #require(scene.operation().map)
    var services = try #require(operation["services"]?.map)
    services["bsky_chat"] = .map([
      "type": .string("ChatServer"), "endpoint": .string("https://chat.example"),
    ])
    var methods = try #require(operation["verificationMethods"]?.map)
    methods["atproto_label"] = .string("did:key:" + SigningKey(seed: "labels").multikey)
    operation["services"] = .map(services)
    operation["verificationMethods"] = .map(methods)
    operation["alsoKnownAs"] = .array([
      .string("at://somebody.example.com"), .string("https://somebody.example"),
    ])
    try scene.directory.append(operation, for: did, signedBy: scene.account.rotation)
    try scene.backUp("--login --password-file old --private")
    let result = try scene.restore("--recovery-key recovery.key \(RestoreScene.agreed)")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectMoved()
    let after = try scene.operation()
    #expect(after["services"]?["bsky_chat"] == services["bsky_chat"])
    #expect(after["verificationMethods"]?["atproto_label"] == methods["atproto_label"])
    #expect(
      after["alsoKnownAs"]
        == .array([.string("at://somebody.new.example"), .string("https://somebody.example")]))
    #expect(after["rotationKeys"]?.array?.first == .string(key))
    #expect(after["rotationKeys"]?.array?.count == 3)
    #expect(scene.moved?.privatePages["app.bsky.actor.getPreferences"] == [Self.preferences])
  }

  @Test func `is a handle of one's own, but not one of the old server's`() throws {
    let scene = try RestoreScene()
    scene.account.handle = "somebody.org"
    try scene.directory.register(scene.account, on: scene.old.url)
    scene.new.setTextRecords(["did=\(scene.account.did)"], for: "somebody.org")
    try scene.backUp()
    #expect(try scene.restore().status == 10)
    #expect(scene.moved?.handle == "somebody.org")
  }

  @Test func `is written to a file instead of being sent`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    let result = try scene.restore(
      "--recovery-key recovery.key --dry-run operation.json \(RestoreScene.agreed)")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("operation.json written; the operation was not sent"))
    #expect(!result.errors.contains("to continue") && !result.errors.contains("confirmation"))
    let operation = try DataModelJSON.decode(scene.folder.read("operation.json"))
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    // It is one that the directory would take.
    #expect(scene.directory.take(operation, for: scene.account.did).status == 200)
  }

  @Test func `is nothing that a wrong code signs`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    #expect(try scene.restore().status == 10)
    let wrong = try scene.restore("--mail-code AAAAA-AAAAA \(RestoreScene.agreed)")
    #expect(wrong.status == 77, "\(wrong.text)\(wrong.errors)")
    #expect(wrong.errors.contains("a code works once"))
    #expect(wrong.errors.contains("to continue: carpack restore"))
    #expect(!wrong.errors.contains("--mail-code AAAAA"))
    let code = try #require(scene.account.mailCode)
    let right = try scene.restore("--mail-code \(code) \(RestoreScene.agreed)")
    #expect(right.status == 0, "\(right.text)\(right.errors)")
    try scene.expectMoved()
  }

  @Test func `is a did:web once its document says so`() throws {
    let directory = try StandInDirectory()
    let old = try StandInPDS()
    let did = "did:web:localhost%3A\(old.server.port)"
    let account = try StandInAccount("somebody", posts: 5, blobs: 4, did: did)
    (account.password, account.email) = (RestoreScene.password, "somebody@example.com")
    old.add(account)
    var behaviour = Behaviour()
    behaviour.userDomain = ".new.example"
    let new = try StandInPDS(behaviour: behaviour)
    (old.directory, new.directory) = (directory, directory)
    directory.setWeb(did, key: "did:key:" + account.key.multikey, server: old.url)
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    try folder.write("old", Array("\(RestoreScene.password)\n".utf8))
    let flags = "--plc \(directory.url) --resolver \(old.url)"
    let backup = try command.run("carpack backup \(did) \(flags) -o archive.car.zst")
    #expect(backup.status == 0, "\(backup.text)\(backup.errors)")
    let line =
      "carpack restore archive.car.zst --to \(new.url) \(flags) --login --password-file old \(RestoreScene.agreed) --yes sign"
    // Nobody is there to publish it meanwhile.
    let waiting = try command.run(line)
    #expect(waiting.status == 10, "\(waiting.text)\(waiting.errors)")
    #expect(waiting.errors.contains("publish this at"), "\(waiting.errors)")
    let made = try #require(new.accounts.first { $0.did == did })
    #expect(made.status == .deactivated && made.blobs.count == 4)
    let key = "did:key:" + made.key.multikey
    let document = old.documentText(of: account)
      .replacingOccurrences(of: account.key.multikey, with: made.key.multikey)
      .replacingOccurrences(of: old.url, with: new.url)
    directory.setWeb(did, key: key, server: new.url)
    old.setDocument(document, for: did)
    let result = try command.run(line)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(made.status == .active)
    #expect(made.paths == account.paths)
  }
}
