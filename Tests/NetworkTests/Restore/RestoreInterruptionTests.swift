import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A restore that is killed` {
  /// Runs a line again and again, killed each time a little later in what the servers are asked,
  /// until it comes to its end.
  private func killAgainAndAgain(
    _ scene: RestoreScene, _ line: String, _ generator: inout SeededGenerator
  ) throws -> Int {
    func requests() -> Int {
      scene.new.server.log.count + scene.directory.server.log.count
    }
    var kills = 0
    while true {
      let running = try scene.command.start(line)
      let most = Int.random(in: 0..<12, using: &generator) == 0 ? 150 : 30
      let bound = requests() + Int.random(in: 1...most, using: &generator)
      while running.isRunning, requests() < bound { pause(0.0005) }
      if Bool.random(using: &generator) {
        pause(Double.random(in: 0...0.01, using: &generator))
      }
      running.signal(9)
      let result = try running.wait()
      if result.status == 0 { return kills }
      try #require(result.status == 137, "\(result.text)\(result.errors)")
      kills += 1
      try #require(kills < 400, "it does not get on")
    }
  }

  @Test(arguments: [5, 6, 7])
  func `goes on, and does nothing twice that has consequences`(_ seed: UInt64) throws {
    var generator = SeededGenerator(printing: seed)
    var behaviour = Behaviour()
    behaviour.latency = 0.003
    let scene = try RestoreScene(posts: 30, blobs: 40, blobSize: 5000, behaviour)
    let key = try scene.addRecoveryKey()
    try scene.backUp()
    scene.old.stop()
    let line = scene.line(
      "--recovery-key recovery.key --email new@example.com --attempts 1 --connections 2 \(RestoreScene.agreed)",
      login: false)
    let kills = try killAgainAndAgain(scene, line, &generator)
    print("killed \(kills) times")
    try scene.expectMoved()
    // The one that the DID began with, the one that named the server, the key's, and the two.
    #expect(scene.directory.operations(of: scene.account.did).count == 5)
    #expect(try scene.operation()["rotationKeys"]?.array?.first == .string(key))
    let last = try scene.command.run(line)
    #expect(last.status == 0, "\(last.text)\(last.errors)")
    try scene.expectNoSecret(in: last)
  }

  @Test func `goes on from a server that lives as well`() throws {
    var generator = SeededGenerator(printing: 11)
    var behaviour = Behaviour()
    behaviour.latency = 0.003
    let scene = try RestoreScene(posts: 30, blobs: 20, behaviour)
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    let line = scene.line(
      "--recovery-key recovery.key --connections 2 \(RestoreScene.agreed) --deactivate-old --yes deactivate-old"
    )
    _ = try killAgainAndAgain(scene, line, &generator)
    try scene.expectMoved()
    #expect(scene.account.status == .deactivated)
    // No key of its own was needed to vouch.
    #expect(scene.directory.operations(of: scene.account.did).count == 4)
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The journal of a restore` {
  private static let journal = "archive.restore.json"

  @Test func `is its owner's alone, and says what was done`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    let stopped = try scene.restore("--recovery-key recovery.key")
    #expect(stopped.status == 10, "\(stopped.text)\(stopped.errors)")
    let attributes = try FileManager.default.attributesOfItem(
      atPath: scene.folder.file(Self.journal))
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let journal = try DataModelJSON.decode(scene.folder.read(Self.journal))
    #expect(journal["did"]?.string == scene.account.did)
    #expect(journal["to"]?.string == scene.new.url)
    #expect(journal["from"]?.string == scene.old.url)
    let steps = journal["steps"]?.array?.compactMap { $0["step"]?.string } ?? []
    #expect(steps == ["account", "repository", "blobs", "comparison"])
    // What was signed is kept, and sent as it is the next time.
    let kept = try #require(journal["operations"]?.array?.last?["operation"])
    let end = try scene.restore("--recovery-key recovery.key \(RestoreScene.agreed)")
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    #expect(scene.directory.operations(of: scene.account.did).last == kept)
  }

  @Test func `of another restore, or that is none, is left alone`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    #expect(try scene.restore("--recovery-key recovery.key").status == 10)
    let journal = try scene.folder.read(Self.journal)
    let elsewhere = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --to \(scene.old.url) \(scene.flags) --login --password-file old"
    )
    // It is there, and equal; that is another restore, with a journal of its own.
    #expect(elsewhere.status == 0, "\(elsewhere.text)\(elsewhere.errors)")
    #expect(try scene.folder.read(Self.journal) == journal)
    #expect(scene.folder.names(under: ".").contains { $0.hasSuffix("archive.2.restore.json") })
    for text in ["", "{", "[]", #"{"carpackRestore":2}"#, #"{"carpackRestore":1,"did":"x"}"#] {
      try scene.folder.write(Self.journal, Array(text.utf8))
      let result = try scene.restore("--recovery-key recovery.key \(RestoreScene.agreed)")
      #expect(result.status == 11, "\(text): \(result.text)\(result.errors)")
      #expect(String(decoding: try scene.folder.read(Self.journal), as: UTF8.self) == text)
    }
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    // Without it, servers and directory still say where things are.
    try FileManager.default.removeItem(atPath: scene.folder.file(Self.journal))
    let moved = try scene.restore("--recovery-key recovery.key --yes identity")
    #expect(moved.status == 10, "\(moved.text)\(moved.errors)")
    #expect(scene.directory.operations(of: scene.account.did).count == 4)
    try FileManager.default.removeItem(atPath: scene.folder.file(Self.journal))
    let end = try scene.restore("--recovery-key recovery.key \(RestoreScene.agreed)")
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    try scene.expectMoved()
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An account that is on the server already` {
  @Test(arguments: [true, false])
  func `is not replaced, whether it is active or not`(_ isActive: Bool) throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    try scene.account.advance()
    if !isActive { scene.account.status = .deactivated }
    let head = scene.account.head
    let line =
      "carpack restore \(RestoreScene.archive) --to \(scene.old.url) \(scene.flags) --login --password-file old --new-password-file old --recovery-key recovery.key --at 1"
    let plan = try scene.command.run("\(line) --plan")
    #expect(plan.status == 13, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("the account is on \(scene.old.url) already"), "\(plan.text)")
    #expect(!plan.text.contains("nothing left to do"), "\(plan.text)")
    let result = try scene.command.run("\(line) \(RestoreScene.agreed)")
    #expect(result.status == 13, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("--blobs-only"))
    #expect(result.errors.contains("--in-place"))
    #expect(scene.account.head == head)
    #expect(scene.calls(of: "importRepo", on: scene.old) == 0)
  }
}
