import ATProtocol
import Archive
import ArchiveTestSupport
import HTTP
import IPLD
import StandIn
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Files
@testable import Live
@testable import Snapshots
@testable import Verification

/// Accounts on a stand-in, backed up within the tests' own process.
final class AccountScene: Sendable {
  let server: StandInPDS
  let folder: TemporaryFolder
  private let seen = Mutex<[BackupEvent]>([])
  private let hour = Mutex(0)

  init(_ accounts: [StandInAccount], _ behaviour: Behaviour = Behaviour()) throws {
    server = try StandInPDS(accounts: accounts, behaviour: behaviour)
    folder = try TemporaryFolder()
  }

  /// Everything that has been said so far.
  var events: [BackupEvent] { seen.withLock { $0 } }

  /// The warnings so far.
  var warnings: [String] {
    events.compactMap { if case .warning(let text) = $0 { text } else { nil } }
  }

  /// How often something has been asked.
  func requestCount(_ endpoint: String) -> Int {
    server.server.log.count { $0.path.hasSuffix(endpoint) }
  }

  func network(_ change: (inout NetworkOptions) -> Void = { _ in }) throws -> Network {
    var options = NetworkOptions(userAgent: "tests")
    options.plcDirectory = server.url
    options.handleResolver = server.url
    options.allowsLoopback = true
    options.attempts = 2
    change(&options)
    return try Network(options)
  }

  /// How to back up; each backup is an hour after the one before.
  var options: AccountBackup.Options {
    let now = hour.withLock { hour in
      hour += 1
      return "2026-01-02T\(hour < 10 ? "0" : "")\(hour):00:00Z"
    }
    return AccountBackup.Options(
      tool: "tests", hostSystem: "Linux", now: { now }, milliseconds: { 0 })
  }

  func backup(_ change: (inout NetworkOptions) -> Void = { _ in }) throws -> AccountBackup {
    AccountBackup(network: try network(change), options: options) { [self] event in
      seen.withLock { $0.append(event) }
    }
  }

  /// The path of a file in the folder.
  func path(_ name: String) -> FilePath { FilePath(folder.file(name)) }

  /// The folder of archives.
  var archives: ArchiveFolder { ArchiveFolder(FilePath(folder.path)) }

  /// Backs an account up into a file, or into the folder without one.
  @discardableResult
  func backUp(_ account: StandInAccount, byHandle: Bool = false, into file: String? = nil)
    async throws
    -> BackupReport
  {
    let name = try byHandle ? ATIdentifier(account.handle) : ATIdentifier(account.did)
    return try await backup().run(
      name, into: file.map { .shared(path($0)) } ?? .folder(archives))
  }

  /// The newest snapshot in an archive.
  func snapshot(_ path: FilePath) throws -> ArchivedSnapshot {
    try ArchivedSnapshot.newest(in: ArchiveReader(path: path))
  }

  /// Whether all of an archive is what it should be.
  func verdict(_ path: FilePath) throws -> SnapshotVerifier.Verdict {
    try SnapshotVerifier().verify(ArchiveReader(path: path), .full).verdict
  }
}
