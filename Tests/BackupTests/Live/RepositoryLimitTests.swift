import ATProtocol
import Archive
import HTTP
import StandIn
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Files
@testable import Live

@Suite(.timeLimit(.minutes(5))) struct `The largest repository that is fetched` {
  private func backUp(_ account: StandInAccount, _ scene: AccountScene, limit: Int) async throws
    -> BackupReport
  {
    var options = scene.options
    options.maxRepository = limit
    return try await AccountBackup(network: scene.network(), options: options) { _ in }
      .run(ATIdentifier(account.did), into: .file(scene.path("a.car.zst")))
  }

  @Test(arguments: [false, true])
  func `is as long as was said, counted when it is decompressed, and asked for once`(
    isCompressed: Bool
  ) async throws {
    let account = try StandInAccount("many", posts: 200)
    var behaviour = Behaviour()
    behaviour.compressesCARs = isCompressed
    let scene = try AccountScene([account], behaviour)
    let length = account.car().count
    await #expect(throws: BackupError.repositoryTooLarge(limit: length - 1)) {
      try await backUp(account, scene, limit: length - 1)
    }
    #expect(scene.requestCount("getRepo") == 1)
    #expect(scene.folder.names().filter { !$0.hasPrefix(".") }.isEmpty)
    #expect(try await backUp(account, scene, limit: length).outcome == .complete)
  }

  @Test func `holds for what comes in the place of changes`() async throws {
    let account = try StandInAccount("many", posts: 200)
    let scene = try AccountScene([account])
    let length = account.car().count
    _ = try await backUp(account, scene, limit: length)
    scene.server.behaviour.since = .ignored
    try account.commit([account.post("3zzzzzzzzzzzz", "one more")])
    await #expect(throws: BackupError.repositoryTooLarge(limit: length)) {
      try await backUp(account, scene, limit: length)
    }
    // Changes themselves are shorter.
    scene.server.behaviour.since = .exact
    #expect(try await backUp(account, scene, limit: length).outcome == .complete)
  }

  @Test func `has two gibibytes unless something else was said`() throws {
    let scene = try AccountScene([])
    #expect(scene.options.maxRepository == 2 << 30)
    #expect(scene.options.maxBlob == 300_000_000)
  }
}
