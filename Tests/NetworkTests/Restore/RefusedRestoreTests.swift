import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

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
    let refused = try run(scene, "--invite bad-code")
    expect(refused, 13, "InvalidInviteCode", "has no such account", "--invite CODE")
    expect(try run(scene, "--invite good-code"), 0)
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
  }

  @Test func `for imports that are switched off, or too long`() throws {
    var behaviour = Behaviour()
    behaviour.takesImports = false
    let scene = try loneScene(behaviour)
    expect(
      try run(scene), 13, "not accepting repo imports", "has the account, deactivated", "--to URL")
    scene.new.behaviour.takesImports = true
    scene.new.behaviour.importLimit = 1000
    expect(try run(scene), 13, "status 413")
    scene.new.behaviour.importLimit = 1 << 30
    expect(try run(scene), 0)
    try scene.expectMoved()
  }

  @Test func `by a second server, too, still says which key the DID names and where that is`()
    throws
  {
    var behaviour = Behaviour()
    behaviour.takesImports = false
    let scene = try loneScene(behaviour)
    let keeps = "the DID names a signing key of your own, which is in"
    expect(try run(scene), 13, "not accepting repo imports", keeps)
    behaviour.userDomain = ".other.example"
    let other = try StandInPDS(behaviour: behaviour)
    other.directory = scene.directory
    let line = scene.line(
      "--recovery-key recovery.key --email new@example.com --attempts 1 \(RestoreScene.agreed)",
      login: false
    ).replacing(scene.new.url, with: other.url)
    expect(try scene.command.run(line), 13, "not accepting repo imports", keeps)
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
    expect(first, 10, "\(large)", isSaid ? "the server accepts" : "413", "--accept missing")
    // What is known beforehand stops it before the DID is changed.
    #expect(scene.moved?.status == (isSaid ? nil : .deactivated))
    #expect(scene.directory.operations(of: scene.account.did).count == (isSaid ? 3 : 4))
    let second = try run(scene, "--accept missing")
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
    expect(try run(scene), 64, "it is the handle of \(other.did)", "--handle HANDLE")
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    let second = try scene.restore(
      "--recovery-key recovery.key --email taken@example.com --attempts 1 \(RestoreScene.agreed) --handle elsewhere.new.example",
      login: false)
    expect(second, 13, "Email already taken", "--email ADDRESS")
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
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
    expect(try scene.restore("--plan"), 77, "has another password", "--new-password-file")
    expect(try scene.restore(), 77, "has another password", "--new-password-file")
    #expect(scene.new.createdCount == 1)
  }

  @Test func `for passwords that are wrong, or for apps`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    try scene.folder.write("old", Array("wrong\n".utf8))
    expect(try scene.restore("--plan"), 77, "refused the handle or the password")
    expect(try scene.restore(), 77, "refused the handle or the password", "--password-file FILE")
    try scene.folder.write("old", Array("app-password\n".utf8))
    expect(try scene.restore(), 77, "app password", "has no such account")
    try scene.folder.write("old", Array("\(RestoreScene.password)\n".utf8))
    scene.account.loginCode = "12345-67890"
    expect(try scene.restore(), 77, "--auth-factor-token CODE")
    #expect(scene.new.createdCount == 0)
    expect(try scene.restore("--auth-factor-token 12345-67890"), 10, "--mail-code")
  }

  @Test func `where the account has gone on since the backup`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    try scene.account.advance()
    expect(try scene.restore(), 13, "has changed since", "carpack backup")
    #expect(scene.new.createdCount == 0)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix(".restore.json") })
    // Chosen by its number, the older state is what is wanted.
    expect(try scene.restore("--at 1"), 10, "--mail-code")
    #expect(scene.new.createdCount == 1)
  }

  @Test func `by a login whose server is away, which is not given up for that`() throws {
    let scene = try loneScene()
    let away = try scene.restore(
      "--recovery-key recovery.key --email new@example.com --attempts 1 \(RestoreScene.agreed)")
    expect(away, 77, "hint: try again later, or", "--abandon-old", "has no such account")
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    expect(try run(scene), 0)
  }

  @Test func `without a way to vouch, and says what is left`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    let alive = try scene.restore("--email new@example.com", login: false)
    expect(alive, 77, "hint: with --login the old server proves it\n")
    scene.old.stop()
    let dead = try scene.restore("--email new@example.com --attempts 1", login: false)
    expect(dead, 77, "hint: --recovery-key FILE proves it", "--as-new", "has no such account")
    #expect(!dead.errors.contains("--login"), "\(dead.errors)")
    let strange = try scene.command.run("carpack recovery-key new -o other.key --quiet")
    #expect(strange.status == 0)
    let result = try scene.restore(
      "--email new@example.com --attempts 1 --recovery-key other.key --yes identity", login: false)
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
      expect(first, 75, "500", "to continue: carpack restore")
      expect(try run(scene), 0)
    } else {
      expect(first, 0)
    }
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
  }
}
