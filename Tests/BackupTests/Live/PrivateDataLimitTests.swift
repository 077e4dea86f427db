import ATProtocol
import HTTP
import StandIn
import TestSupport
import Testing
import XRPC

@testable import Live
@testable import Snapshots
@testable import Verification

@Suite(.timeLimit(.minutes(15))) struct `Private data that never ends` {
  private static let mutes = "app.bsky.graph.getMutes"
  private static let chat = "chat.bsky.actor.exportAccountData"
  private static let preferences = "app.bsky.actor.getPreferences"

  /// Backs up with this many seconds for all private data together.
  private func backUp(_ account: StandInAccount, _ scene: AccountScene, within seconds: Int)
    async throws -> BackupReport
  {
    var options = scene.options
    options.keepsPrivateData = true
    options.privateDataLimit = .seconds(seconds)
    options.session = { did, server, network in
      Session(
        service: server, network: network, identifier: did.text, of: did,
        password: Secret("a-password"))
    }
    let backup = AccountBackup(network: try scene.network(), options: options) { _ in }
    return try await backup.run(ATIdentifier(account.did), into: .folder(scene.archives))
  }

  @Test(arguments: [mutes, chat])
  func `costs that part only, which is named and asked for again`(_ endless: String) async throws {
    let account = try StandInAccount("alice", posts: 3, blobs: 2)
    account.password = "a-password"
    // Larger than what is sent in a quarter of an hour.
    let long = String(repeating: "x", count: 1 << 20)
    account.privatePages = [
      Self.preferences: [#"{"preferences":[]}"#],
      Self.mutes: [#"{"mutes":[{"note":"\#(long)"}]}"#],
      Self.chat: [#"{"message":"\#(long)"}"#],
    ]
    let scene = try AccountScene([account])
    scene.server.play(FaultRule(.distorted(.dripping(bytesPerSecond: 1000)), on: endless))
    let begin = ContinuousClock.now
    let report = try await backUp(account, scene, within: 10)
    // A tenth of the limit is for each kind, except for the chat, which may take all that is left.
    #expect(begin.duration(to: .now) < .seconds(200))
    // What makes the exit status 10.
    #expect(report.lacksPrivateData)
    #expect(
      report.warnings.contains {
        $0.contains("private data is incomplete: \(endless): it took too long")
      },
      "\(report.warnings)")
    #expect(report.snapshot.isSettled && report.missing.isEmpty)
    let path = scene.path("\(account.handle).car.zst")
    #expect(try scene.verdict(path) == .intact)
    let saved = try scene.snapshot(path)
    #expect(saved.snapshot.commit == account.head)
    let count = scene.requestCount("getBlob")
    #expect(count == account.referencedBlobs.count)

    scene.server.clearFaults()
    let asked = scene.requestCount(endless)
    let next = try await backUp(account, scene, within: 1000)
    #expect(!next.lacksPrivateData && scene.requestCount(endless) > asked)
    #expect(scene.requestCount("getRepo") == 1 && scene.requestCount("getBlob") == count)
  }
}
