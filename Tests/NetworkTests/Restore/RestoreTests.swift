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
    #expect(second.errors.contains("--yes-identity"))
    #expect(scene.directory.operations(of: scene.account.did).count == 2)

    let third = try scene.restore(
      "--verbose \(RestoreScene.agreed) --deactivate-old --yes-deactivate-old")
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
    #expect(scene.new.server.log.count { $0.path.hasSuffix("importRepo") } == 1)
  }

  @Test func `from a server that is gone takes a key of one's own`() throws {
    let scene = try RestoreScene()
    let key = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    let line = "--recovery-key recovery.key --email new@example.com --attempts 1"
    let first = try scene.restore(line, login: false)
    #expect(first.status == 10, "\(first.text)\(first.errors)")
    #expect(first.errors.contains("--yes-identity"))
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

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A restore that is refused` {
  private static let lone = "--recovery-key recovery.key --email new@example.com --attempts 1"

  /// A scene without the old server, which needs no code by mail.
  private func loneScene(
    blobs: Int = 10, blobSize: Int = 3000, _ behaviour: Behaviour = Behaviour()
  ) throws -> RestoreScene {
    let scene = try RestoreScene(blobs: blobs, blobSize: blobSize, behaviour)
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    return scene
  }

  private func run(_ scene: RestoreScene, _ more: String = "") throws -> Command.Result {
    let result = try scene.restore(
      "\(Self.lone) \(RestoreScene.agreed) \(more)", login: false)
    try scene.expectNoSecret(in: result)
    return result
  }

  private func expect(
    _ result: Command.Result, _ status: Int32, _ words: String...,
    location: SourceLocation = #_sourceLocation
  ) {
    #expect(result.status == status, "\(result.text)\(result.errors)", sourceLocation: location)
    for word in words {
      #expect(
        result.errors.contains(word), "\(word) in \(result.errors)", sourceLocation: location)
    }
  }

  @Test func `for want of an invite, or for a wrong one`() throws {
    var behaviour = Behaviour()
    behaviour.invites = ["good-code"]
    let scene = try loneScene(behaviour)
    expect(try run(scene), 64, "--invite")
    // Nothing was changed for it.
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    expect(try run(scene, "--invite bad-code"), 13, "InvalidInviteCode", "run the same command")
    expect(try run(scene, "--invite good-code"), 0)
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
  }

  @Test func `for imports that are switched off, or too long`() throws {
    var behaviour = Behaviour()
    behaviour.takesImports = false
    let scene = try loneScene(behaviour)
    expect(
      try run(scene), 13, "not accepting repo imports", "has the account, deactivated",
      "run the same command again")
    scene.new.behaviour.takesImports = true
    scene.new.behaviour.importLimit = 1000
    expect(try run(scene), 13, "status 413")
    scene.new.behaviour.importLimit = 1 << 30
    expect(try run(scene), 0)
    try scene.expectMoved()
  }

  @Test(arguments: [true, false])
  func `for blobs that are too long`(_ isSaid: Bool) throws {
    var behaviour = Behaviour()
    behaviour.blobLimit = 1 << 20
    behaviour.saysBlobLimit = isSaid
    let scene = try RestoreScene(blobs: 10, large: [2 << 20], behaviour)
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    let large = try #require(scene.account.blobs.first { $0.value.size > 1 << 20 }).key
    let first = try run(scene)
    expect(first, 10, "\(large)", isSaid ? "the server takes" : "413", "--accept-missing")
    #expect(scene.moved?.status == .deactivated)
    #expect(scene.directory.operations(of: scene.account.did).count == 4)
    let second = try run(scene, "--accept-missing")
    expect(second, 10, "\(large)")
    try scene.expectMoved(without: [large])
  }

  @Test func `for a blob whose type the server does not take`() throws {
    let scene = try RestoreScene(blobs: 4)
    let note = BlobContent(Array("a note".utf8), mimeType: "text/plain")
    try scene.account.commit([scene.account.post("3lkxag2qhdc2b", "a note", showing: [note])])
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    expect(try run(scene), 10, "\(note.cid)", "status 500")
    // The newest do.
    scene.new.behaviour.refusedTypes = []
    expect(try run(scene), 0)
    try scene.expectMoved()
  }

  @Test func `for records under paths that servers do not take`() throws {
    let scene = try RestoreScene()
    let record: IPLDMap = ["$type": .string("polka.edge"), "name": .string("two segments")]
    try scene.account.commit([.put(path: "polka.edge/3lkxag2qhdc2b", record: record)])
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    expect(
      try scene.restore("--recovery-key recovery.key"), 13, "polka.edge/3lkxag2qhdc2b",
      "status 500", "has the account, deactivated")
    let plan = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --plan --to \(scene.new.url) \(scene.flags)")
    #expect(plan.errors.contains("polka.edge/3lkxag2qhdc2b"), "\(plan.errors)")
  }

  @Test(arguments: [true, false])
  func `waits for a limit of uploads`(_ hasRetryAfter: Bool) throws {
    var behaviour = Behaviour()
    behaviour.uploadLimit = Behaviour.RateLimit(requests: 4, seconds: 2)
    behaviour.uploadLimit?.hasRetryAfter = hasRetryAfter
    let scene = try loneScene(behaviour)
    expect(try run(scene), 0, "waiting", "uploadBlob")
    try scene.expectMoved()
    // Those that were refused were sent again, and no others.
    let uploads = scene.new.server.log.filter { $0.path.hasSuffix("uploadBlob") }
    #expect(uploads.count { $0.status == 200 } == 10)
  }

  @Test func `for a handle or an address that another account has`() throws {
    let scene = try loneScene()
    let other = try StandInAccount("other", handle: "somebody.new.example")
    other.email = "taken@example.com"
    scene.new.add(other)
    expect(try run(scene), 13, "Handle already taken")
    let second = try scene.restore(
      "--recovery-key recovery.key --email taken@example.com --attempts 1 \(RestoreScene.agreed) --handle elsewhere.new.example",
      login: false)
    expect(second, 13, "Email already taken")
    expect(try run(scene, "--handle elsewhere.new.example"), 0)
    #expect(scene.moved?.handle == "elsewhere.new.example")
    #expect(
      try scene.operation()["alsoKnownAs"] == .array([.string("at://elsewhere.new.example")]))
  }

  @Test func `for another password than the account there has`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    expect(try scene.restore(), 10, "--mail-code")
    try scene.folder.write("new", Array("another-password\n".utf8))
    expect(try scene.restore(), 77, "has another password", "--new-password-file")
    #expect(scene.new.createdCount == 1)
  }

  @Test func `for passwords that are wrong, or for apps`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    try scene.folder.write("old", Array("wrong\n".utf8))
    expect(try scene.restore(), 77, "createSession", "nothing was changed")
    try scene.folder.write("old", Array("app-password\n".utf8))
    expect(try scene.restore(), 77, "app password", "nothing was changed")
    try scene.folder.write("old", Array("\(RestoreScene.password)\n".utf8))
    scene.account.loginCode = "12345-67890"
    expect(try scene.restore(), 77, "--auth-factor-token", "nothing was changed")
    #expect(scene.new.createdCount == 0)
    expect(try scene.restore("--auth-factor-token 12345-67890"), 10, "--mail-code")
  }

  @Test func `where the account has gone on since the backup`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    try scene.account.advance()
    expect(try scene.restore(), 13, "has gone on", "carpack backup")
    #expect(scene.new.createdCount == 0)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix(".restore.json") })
    // Chosen by its number, the older state is what is wanted.
    expect(try scene.restore("--at 1"), 10, "--mail-code")
    #expect(scene.new.createdCount == 1)
  }

  @Test func `without a way to vouch, and says what is left`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    let alive = try scene.restore("--email new@example.com", login: false)
    expect(alive, 77, "--login")
    scene.old.stop()
    let dead = try scene.restore("--email new@example.com --attempts 1", login: false)
    expect(dead, 77, "--as-new", "nothing was changed")
    let strange = try scene.command.run("carpack recovery-key new -o other.key --quiet")
    #expect(strange.status == 0)
    let result = try scene.restore(
      "--email new@example.com --attempts 1 --recovery-key other.key --yes-identity", login: false)
    expect(result, 13, "not among the account's rotation keys")
    #expect(scene.directory.operations(of: scene.account.did).count == 2)
  }

  @Test(arguments: StandInDirectory.Mishap.allCases)
  func `by a directory that fails, which is asked before it is told again`(
    _ mishap: StandInDirectory.Mishap
  ) throws {
    let scene = try loneScene()
    scene.directory.play(mishap)
    let first = try run(scene)
    if mishap == .fails {
      expect(first, 75, "500", "the same command")
      expect(try run(scene), 0)
    } else {
      expect(first, 0)
    }
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `JSON of restores` {
  @Test func `is what the schemas say, whatever happens`() throws {
    let scene = try RestoreScene(large: [2 << 20])
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    func run(_ line: String, _ status: Int32) throws {
      let result = try scene.command.run("\(line) --json")
      #expect(result.status == status, "\(line): \(result.text)\(result.errors)")
      let faults = OutputSchema.faults(in: result.text) + OutputSchema.faults(in: result.errors)
      #expect(faults.isEmpty, "\(line)")
      #expect(!result.text.isEmpty || status == 64, "\(line)")
    }
    let did = scene.account.did
    try run(
      "carpack restore \(RestoreScene.archive) --plan --to \(scene.new.url) \(scene.flags)", 0)
    try run("carpack recovery-key list \(did) \(scene.flags)", 0)
    try run("carpack recovery-key check recovery.key \(did) \(scene.flags)", 0)
    try run("carpack recovery-key new -o other.key --curve p256", 0)
    try run("carpack recovery-key check other.key \(did) \(scene.flags)", 10)
    try run(
      "carpack recovery-key add other.key \(did) --with recovery.key --yes-identity \(scene.flags)",
      0)
    scene.new.behaviour.blobLimit = 1 << 20
    try run(scene.line("--recovery-key recovery.key"), 10)
    scene.new.behaviour.blobLimit = 1 << 30
    try run(scene.line("--recovery-key recovery.key"), 10)
    try run(scene.line("--recovery-key recovery.key \(RestoreScene.agreed)"), 0)
    try run(
      "carpack restore \(RestoreScene.archive) --login --password-file new --record app.bsky.feed.post \(scene.flags)",
      0)
    try run(
      "carpack restore \(RestoreScene.archive) --blobs-only --login --password-file new \(scene.flags)",
      0)
  }
}

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
    let code = try #require(scene.account.mailCode)
    let unsent = try scene.command.run("\(line) --mail-code \(code)")
    #expect(unsent.status == 10, "\(unsent.text)\(unsent.errors)")
    #expect(scene.directory.operations(of: did).count == 2)
    #expect(try scene.command.run(line).status == 10)
    let second = try #require(scene.account.mailCode)
    let sent = try scene.command.run("\(line) --mail-code \(second) --yes-identity")
    #expect(sent.status == 0, "\(sent.text)\(sent.errors)")
    #expect(sent.errors.contains("+ rotation key \(key)"))
    let checked = try scene.command.run(check)
    #expect(checked.status == 0)
    #expect(checked.text.contains("rotation key 1 of 2"))
    // Once more, nothing is sent.
    #expect(try scene.command.run("\(line) --yes-identity").status == 0)
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
    #expect(try run(check, ["CARPACK_KEY_PASSPHRASE": "wrong"]).status == 64)
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
    #expect(result.status == 10, "\(result.text)\(result.errors)")
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
    #expect(wrong.errors.contains("a code is good once"))
    #expect(wrong.errors.contains("run the same command again"))
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
    let running = try command.start(
      "carpack restore archive.car.zst --to \(new.url) \(flags) --login --password-file old \(RestoreScene.agreed)"
    )
    var moved: StandInAccount?
    while running.isRunning, moved == nil || moved?.blobs.count != 4 {
      moved = new.accounts.first { $0.did == did }
      pause(0.05)
    }
    pause(0.5)
    let made = try #require(moved)
    #expect(made.status == .deactivated)
    let key = "did:key:" + made.key.multikey
    let document = old.documentText(of: account)
      .replacingOccurrences(of: account.key.multikey, with: made.key.multikey)
      .replacingOccurrences(of: old.url, with: new.url)
    directory.setWeb(did, key: key, server: new.url)
    old.setDocument(document, for: did)
    let result = try running.wait()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("publish this at"))
    #expect(made.status == .active)
    #expect(made.paths == account.paths)
  }
}

/// What a hostile or broken server may say.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A new server that is not what it should be` {
  private func scene() throws -> RestoreScene {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    return scene
  }

  private func run(_ scene: RestoreScene, _ more: String = "") throws -> Command.Result {
    let result = try scene.restore(
      "--recovery-key recovery.key --attempts 1 \(RestoreScene.agreed) \(more)")
    try scene.expectNoSecret(in: result)
    return result
  }

  @Test(arguments: [
    "describeServer", "createAccount", "importRepo", "listMissingBlobs", "uploadBlob",
    "checkAccountStatus", "getRepo", "getBlob", "getRecommendedDidCredentials",
    "submitPlcOperation", "activateAccount", "createSession",
  ])
  func `is told from one that is, and the restore goes on later`(_ method: String) throws {
    let scene = try scene()
    for fault in [Fault.status(500), .captivePortal, .dropped] {
      scene.new.play(FaultRule(fault, on: method))
      let result = try run(scene)
      #expect(result.status != 0, "\(method), \(fault): \(result.text)\(result.errors)")
      #expect(result.status < 128, "\(method), \(fault): \(result.errors)")
      scene.new.clearFaults()
    }
    let end = try run(scene)
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 4)
  }

  @Test func `gives back another repository, or another blob`() throws {
    for fault in [Fault.previousRevision, .lacksBlocks] {
      let scene = try scene()
      scene.new.play(FaultRule(fault, on: "getRepo"))
      let result = try run(scene)
      #expect(result.status == 11, "\(fault): \(result.text)\(result.errors)")
      #expect(scene.directory.operations(of: scene.account.did).count == 3)
    }
    let scene = try scene()
    scene.new.play(FaultRule(.otherContent, on: "getBlob", times: 1))
    let result = try run(scene)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("the server gives back other bytes"))
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
  }

  @Test func `wants the DID to name another server`() throws {
    let scene = try scene()
    let other = scene.new.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let result = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --to \(other) \(scene.flags) --login --password-file old --recovery-key recovery.key \(RestoreScene.agreed)"
    )
    #expect(result.status == 13, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("name it like that with --to"))
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
  }

  @Test func `goes on while the account writes on the old one`() throws {
    let scene = try scene()
    #expect(
      try scene.restore("--recovery-key recovery.key").status == 10)
    // After everything was sent, and before the identity moves.
    try scene.account.advance()
    let late = try run(scene)
    #expect(late.status == 13, "\(late.text)\(late.errors)")
    try scene.backUp()
    let end = try run(scene)
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    // The server keeps what records referred to that an import took away.
    let moved = try #require(scene.moved)
    #expect(moved.head == scene.account.head)
    #expect(moved.status == .active)
    #expect(Set(moved.blobs.keys).isSuperset(of: scene.account.referencedBlobs))
  }
}
