import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

extension RestoreScene {
  /// The commands that a failed one names to continue with.
  func ways(_ result: Command.Result) -> [String] {
    result.errors.split(separator: "\n").compactMap { line in
      for mark in ["to continue: ", "or: "] where line.hasPrefix(mark) {
        return String(line.dropFirst(mark.count))
      }
      return nil
    }
  }

  /// Runs one of them, with what the user has to say in the place of words in capitals.
  func follow(
    _ result: Command.Result, way: Int = 0, _ words: [String: String] = [:],
    environment: [String: String] = [:], location: SourceLocation = #_sourceLocation
  ) throws -> Command.Result {
    let ways = ways(result)
    try #require(ways.indices.contains(way), "\(result.errors)", sourceLocation: location)
    var line = ways[way]
    for (word, value) in words {
      line = line.replacingOccurrences(of: " \(word)", with: " \(value)")
    }
    return try command.start(line, environment: environment).wait()
  }

  /// Expects that nothing was changed anywhere.
  func expectUntouched(location: SourceLocation = #_sourceLocation) {
    #expect(new.createdCount == 0, sourceLocation: location)
    #expect(directory.postCount == 0, sourceLocation: location)
  }
}

/// What stands in the way is found before anything is changed, and each failure names what the
/// servers say and a command that completes.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A restore that stops` {
  private static let lone =
    "--recovery-key recovery.key --email new@example.com --attempts 1 \(RestoreScene.agreed)"

  /// A scene without the old server.
  private func loneScene(_ behaviour: Behaviour = Behaviour()) throws -> RestoreScene {
    let scene = try RestoreScene(behaviour)
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    return scene
  }

  private func run(_ scene: RestoreScene, _ more: String = "") throws -> Command.Result {
    let result = try scene.restore("\(Self.lone) \(more)", login: false)
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

  /// A third server.
  private func third(_ scene: RestoreScene) throws -> StandInPDS {
    let third = try StandInPDS()
    third.directory = scene.directory
    third.behaviour.userDomain = ".third.example"
    return third
  }

  @Test func `for an invite code, or a wrong one`() throws {
    var behaviour = Behaviour()
    behaviour.invites = ["good-code"]
    let scene = try loneScene(behaviour)
    let first = try run(scene)
    expect(first, 64, "has no such account", "does not answer")
    scene.expectUntouched()
    let second = try scene.follow(first, ["CODE": "bad-code"])
    expect(second, 13, "InvalidInviteCode", "has no such account")
    scene.expectUntouched()
    #expect(!second.errors.contains("to continue: \(scene.line(""))bad-code"))
    expect(try scene.follow(second, ["CODE": "good-code"]), 0)
    try scene.expectMoved()
  }

  @Test func `and says why a server's answer does not count`() throws {
    let scene = try loneScene()
    scene.new.play(FaultRule(.captivePortal, on: "getLatestCommit"))
    let result = try run(scene)
    #expect(result.status != 0)
    #expect(result.errors.contains("does not answer as it should ("), "\(result.errors)")
    #expect(!result.errors.contains("within 10 seconds"), "\(result.errors)")
    scene.expectUntouched()
    scene.new.clearFaults()
    expect(try scene.follow(result), 0)
  }

  @Test func `for a handle that is taken, before the DID is changed`() throws {
    let scene = try loneScene()
    scene.new.add(try StandInAccount("other", handle: "somebody.new.example"))
    let result = try run(scene)
    expect(result, 64, "it is the handle of")
    scene.expectUntouched()
    expect(try scene.follow(result, ["HANDLE": "elsewhere.new.example"]), 0)
    try scene.expectMoved()
  }

  @Test func `for a handle that leads nowhere, before the DID is changed`() throws {
    let scene = try loneScene()
    let result = try run(scene, "--handle somebody.org")
    expect(result, 64, "does not resolve it to")
    scene.expectUntouched()
    scene.new.setTextRecords(["did=\(scene.account.did)"], for: "somebody.org")
    expect(try run(scene, "--handle somebody.org"), 0)
  }

  @Test func `for a handle that a deactivated account has, of which the server says only 500`()
    throws
  {
    let scene = try loneScene()
    let other = try StandInAccount("other", handle: "somebody.new.example")
    other.status = .deactivated
    scene.new.add(other)
    let result = try run(scene)
    expect(result, 75, "status 500", "has no such account", "a signing key of your own")
    expect(try scene.follow(result, way: 1, ["HANDLE": "elsewhere.new.example"]), 0)
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
  }

  @Test func `for a recovery key of another account, in its plan as well`() throws {
    let scene = try loneScene()
    #expect(try scene.command.run("carpack recovery-key new -o other.key --quiet").status == 0)
    let line =
      "--recovery-key other.key --email new@example.com --attempts 1 \(RestoreScene.agreed)"
    let plan = try scene.restore("\(line) --plan", login: false)
    #expect(plan.status == 13, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("not among the account's rotation keys"))
    #expect(!plan.text.contains("a mail address"))
    let result = try scene.restore(line, login: false)
    expect(result, 13, "not among the account's rotation keys")
    scene.expectUntouched()
    expect(try scene.follow(result, ["KEYFILE": "recovery.key"]), 0)
    try scene.expectMoved()
  }

  @Test func `for a server that calls itself otherwise`() throws {
    var behaviour = Behaviour()
    behaviour.hostName = "localhost"
    let scene = try loneScene(behaviour)
    let result = try run(scene)
    expect(result, 13, "calls itself \(scene.new.publicURL)")
    scene.expectUntouched()
    expect(try scene.follow(result), 0)
    try scene.expectMoved()
  }

  @Test(arguments: [
    "com.atproto.repo.importRepo", "com.atproto.server.createAccount",
    "com.atproto.repo.uploadBlob", "com.atproto.repo.listMissingBlobs",
    "com.atproto.server.checkAccountStatus", "com.atproto.server.activateAccount",
    "com.atproto.identity.getRecommendedDidCredentials",
  ])
  func `for a server that lacks a method`(_ method: String) throws {
    var behaviour = Behaviour()
    behaviour.lacks = [method]
    let scene = try loneScene(behaviour)
    let plan = try scene.restore("\(Self.lone) --plan", login: false)
    #expect(plan.status == 13, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("has no \(method)"))
    let result = try run(scene)
    expect(result, 13, "has no \(method)")
    scene.expectUntouched()
    let third = try third(scene)
    expect(try scene.follow(result, ["URL": third.url]), 0)
    #expect(third.accounts.first?.paths == scene.account.paths)
  }

  @Test func `for imports that are switched off, and goes on elsewhere with the same key`() throws {
    var behaviour = Behaviour()
    behaviour.takesImports = false
    let scene = try loneScene(behaviour)
    let result = try run(scene)
    expect(result, 13, "has the account, deactivated", "a signing key of your own")
    let third = try third(scene)
    expect(try scene.follow(result, ["URL": third.url]), 0)
    #expect(third.accounts.first?.paths == scene.account.paths)
    #expect(third.accounts.first?.status == .active)
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-key.pem") })
  }

  @Test func `for a server that was stopped while it made the account`() throws {
    let scene = try loneScene()
    scene.new.leaveHalfMade(scene.account.did)
    let result = try run(scene)
    expect(result, 13, "was stopped while it created", "has no such account", "its operator")
    // It is no wait, and the same the next time.
    expect(try run(scene), 13, "was stopped while it created")
    let third = try third(scene)
    expect(try scene.follow(result, ["URL": third.url]), 0)
  }

  @Test func `for another password than the account there has, before the DID is changed`() throws {
    let scene = try loneScene()
    let there = try StandInAccount("there", handle: "somebody.new.example", did: scene.account.did)
    (there.status, there.password) = (.deactivated, "good-password")
    scene.new.add(there)
    let result = try run(scene)
    expect(result, 77, "has another password", "has the account, deactivated")
    #expect(scene.directory.postCount == 0)
    try scene.folder.write("good", Array("good-password\n".utf8))
    expect(try scene.follow(result, ["FILE": "good"]), 0)
    #expect(there.status == .active)
  }

  @Test func `for blobs that would be missing, and says what the account will lack`() throws {
    let scene = try RestoreScene(blobs: 4)
    _ = try scene.addRecoveryKey()
    let lost = try #require(scene.account.blobs.first?.key)
    scene.account.lose(lost)
    _ = try scene.command.run(
      "carpack backup \(scene.account.did) \(scene.flags) -o \(RestoreScene.archive)")
    scene.old.stop()
    let result = try run(scene)
    expect(result, 10, "\(lost)")
    #expect(result.text.contains("the account would lack: 1 of 4 blobs"))
    scene.expectUntouched()
    let end = try scene.follow(result)
    expect(end, 10, "\(lost)")
    try scene.expectMoved(without: [lost])
  }

  @Test func `where the account has gone on, and says what an older state lacks`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    try scene.account.commit([
      scene.account.post("3lkxag2qhdc2b", "one more"), .delete(path: scene.account.paths[0]),
    ])
    let line = "--recovery-key recovery.key \(RestoreScene.agreed)"
    let result = try scene.restore(line)
    expect(result, 13, "has changed since", "has the account, active", "has no such account")
    scene.expectUntouched()
    #expect(result.text.contains("the account would lack: what was written on \(scene.old.url)"))
    let end = try scene.follow(result)
    expect(end, 0)
    #expect(end.text.contains("the account lacks: what was written on \(scene.old.url)"))
    let other = try RestoreScene()
    _ = try other.addRecoveryKey()
    try other.backUp()
    try other.account.commit([
      other.account.post("3lkxag2qhdc2b", "one more"), .delete(path: other.account.paths[0]),
    ])
    try other.backUp()
    let older = try other.restore("\(line) --at 1 --plan")
    #expect(older.text.contains("snapshot 2, the newest: records created (1) and updated (0)"))
    #expect(older.text.contains("deleted ones (1) come back"))
  }

  @Test func `for a code that came by mail`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    let first = try scene.restore(RestoreScene.agreed)
    expect(first, 10, "has the account, deactivated")
    let second = try scene.follow(first, ["CODE": "AAAAA-AAAAA"])
    expect(second, 77, "has the account, deactivated")
    #expect(second.errors.contains("to continue: \(scene.line(RestoreScene.agreed))"))
    let third = try scene.follow(second)
    expect(third, 10, "--mail-code CODE")
    expect(try scene.follow(third, ["CODE": try #require(scene.account.mailCode)]), 0)
    try scene.expectMoved()
  }

  @Test func `for a step that needs a word`() throws {
    let scene = try loneScene()
    var result = try scene.restore(
      "--recovery-key recovery.key --email new@example.com --attempts 1", login: false)
    for step in ["identity", "activate"] {
      expect(result, 10, "--yes \(step)")
      result = try scene.follow(result)
    }
    expect(result, 0)
    try scene.expectMoved()
  }

  @Test func `for want of a login, or of a key`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    let alive = try scene.restore(RestoreScene.agreed + " --email new@example.com", login: false)
    expect(alive, 77, "has the account, active")
    scene.expectUntouched()
    let asked = try scene.follow(alive, environment: ["CARPACK_PASSWORD": RestoreScene.password])
    expect(asked, 10, "--mail-code CODE")
    scene.old.stop()
    let third = try third(scene)
    let dead = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --to \(third.url) \(scene.flags) --new-password-file new --email new@example.com --attempts 1 \(RestoreScene.agreed)"
    )
    expect(dead, 77, "the old server is gone", "does not answer")
    #expect(scene.directory.postCount == 0)
    expect(try scene.follow(dead, ["KEYFILE": "recovery.key"]), 0)
    #expect(third.accounts.first?.status == .active)
  }

  @Test(arguments: [
    "importRepo", "listMissingBlobs", "checkAccountStatus", "getRepo",
    "getRecommendedDidCredentials", "activateAccount",
  ])
  func `for an answer that did not come`(_ method: String) throws {
    let scene = try loneScene()
    scene.new.play(FaultRule(.dropped, on: method, times: 4))
    var result = try run(scene)
    #expect(
      result.status == 0 || result.errors.contains("state: the DID names"),
      "\(result.errors)")
    for _ in 0..<8 where result.status != 0 { result = try scene.follow(result) }
    expect(result, 0)
    try scene.expectMoved()
  }

  private func hasAskedForAccount(_ scene: RestoreScene) throws -> Bool {
    guard scene.folder.names(under: ".").contains(where: { $0.hasSuffix("archive.restore.json") })
    else { return false }
    let journal = try DataModelJSON.decode(scene.folder.read("archive.restore.json"))
    return journal["askedForAccount"] == .boolean(true)
  }

  @Test func `at a signal, soon, while the server says nothing`() throws {
    let scene = try loneScene()
    var rule = FaultRule(.silent, on: "createAccount")
    rule.sparesQuestions = true
    scene.new.play(rule)
    for (signal, status) in [(SIGTERM, Int32(143)), (SIGINT, 130)] {
      let running = try scene.command.start(scene.line(Self.lone, login: false))
      // What it says first, it says when it heeds signals; the journal may be that of the run
      // before.
      while running.isRunning, try running.errorsSoFar().isEmpty || !hasAskedForAccount(scene) {
        pause(0.02)
      }
      pause(0.2)
      running.signal(signal)
      let result = try running.wait()
      #expect(result.status == status, "\(result.errors)")
    }
    scene.new.clearFaults()
    expect(try run(scene), 0)
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
  }

  @Test func `for another that restores the same account to the same server`() throws {
    let scene = try loneScene()
    var rule = FaultRule(.late(seconds: 3), on: "importRepo")
    rule.sparesQuestions = true
    scene.new.play(rule)
    let first = try scene.command.start(scene.line(Self.lone, login: false))
    while first.isRunning, try !hasAskedForAccount(scene) { pause(0.02) }
    let second = try run(scene)
    expect(second, 73, "another restore", "to continue: carpack restore")
    #expect(try first.wait().status == 0)
    expect(try scene.follow(second), 0)
    try scene.expectMoved()
  }

  @Test func `for nothing where the own clock is slow, or fast`() throws {
    for offset in [-180.0, 7200] {
      let scene = try loneScene()
      let clock = ["SOURCE_DATE_EPOCH": "\(Int(Date().timeIntervalSince1970 + offset))"]
      let result = try scene.command.start(
        scene.line(Self.lone, login: false), environment: clock
      ).wait()
      expect(result, 0)
      try scene.expectMoved()
    }
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Keys of a server that an account has left` {
  private func keys(_ scene: RestoreScene) throws -> [String] {
    try scene.operation()["rotationKeys"]?.array?.compactMap(\.string) ?? []
  }

  @Test func `are dropped where that is asked for and something shows whose they are`() throws {
    let scene = try RestoreScene()
    let own = try scene.addRecoveryKey()
    let second = try scene.addRecoveryKey("second.key")
    try scene.backUp()
    let plan = try scene.restore("--recovery-key recovery.key --plan")
    #expect(plan.status == 0, "\(plan.text)\(plan.errors)")
    let moved = try scene.restore(
      "--recovery-key recovery.key --drop-old-keys \(RestoreScene.agreed)")
    #expect(moved.status == 0, "\(moved.text)\(moved.errors)")
    let new = "did:key:" + scene.new.rotationKey.multikey
    #expect(try keys(scene) == [second, own, new])

    // The next server is gone when the account leaves it: the log shows its key.
    scene.new.stop()
    let third = try StandInPDS()
    third.directory = scene.directory
    let line =
      "carpack restore \(RestoreScene.archive) --to \(third.url) --plc \(scene.directory.url) --resolver \(scene.old.url) --new-password-file new --recovery-key recovery.key --email a@example.com --attempts 1 --handle somebody.example.com"
    let named = try scene.command.run("\(line) --plan")
    #expect(named.text.contains("\(new) is the old server's"), "\(named.text)\(named.errors)")
    let kept = try scene.command.run("\(line) \(RestoreScene.agreed)")
    #expect(kept.status == 0, "\(kept.text)\(kept.errors)")
    let thirds = "did:key:" + third.rotationKey.multikey
    #expect(try keys(scene) == [second, own, thirds, new])
    let dropped = try scene.command.run("\(line) \(RestoreScene.agreed) --drop-old-keys")
    #expect(dropped.status == 0, "\(dropped.text)\(dropped.errors)")
    #expect(try keys(scene) == [second, own, thirds])
  }

  @Test func `are shown by what the server recommended at the time of the backup`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp("--login --password-file old --private")
    scene.old.stop()
    let line = "--recovery-key recovery.key --email a@example.com --attempts 1"
    let plan = try scene.restore("\(line) --plan", login: false)
    #expect(plan.text.contains("recommended it at the time of the backup"), "\(plan.text)")
    let moved = try scene.restore(
      "\(line) --drop-old-keys \(RestoreScene.agreed)", login: false)
    #expect(moved.status == 0, "\(moved.text)\(moved.errors)")
    #expect(try keys(scene).count == 2)
  }

  @Test func `are not guessed where what it recommended cannot be read, which is said`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    scene.account.privatePages["com.atproto.identity.getRecommendedDidCredentials"] = [
      #"{"rotationKeys":"all of them"}"#
    ]
    try scene.backUp("--login --password-file old --private")
    scene.old.stop()
    let plan = try scene.restore(
      "--recovery-key recovery.key --email a@example.com --attempts 1 --plan", login: false)
    #expect(plan.errors.contains("that cannot be read"), "\(plan.text)\(plan.errors)")
    #expect(!plan.text.contains("at the time of the backup"), "\(plan.text)")
    // To drop none of them in silence would leave the account in the old server's hands.
    let before = try keys(scene)
    let dropping = try scene.restore(
      "--recovery-key recovery.key --email a@example.com --attempts 1 --drop-old-keys \(RestoreScene.agreed)",
      login: false)
    #expect(dropping.status == 13, "\(dropping.text)\(dropping.errors)")
    #expect(dropping.errors.contains("nothing shows which keys are the old server's"))
    #expect(try keys(scene) == before)
    let again = try scene.command.run("carpack recovery-key new -o recovery.key")
    #expect(again.status == 73 && again.errors.contains("exists already"), "\(again.errors)")
  }
}
