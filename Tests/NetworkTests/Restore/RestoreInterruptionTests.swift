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
      "--recovery-key recovery.key --connections 2 \(RestoreScene.agreed) --deactivate-old --yes-deactivate-old"
    )
    _ = try killAgainAndAgain(scene, line, &generator)
    try scene.expectMoved()
    #expect(scene.account.status == .deactivated)
    // No key of its own was needed to vouch.
    #expect(scene.directory.operations(of: scene.account.did).count == 4)
  }
}
