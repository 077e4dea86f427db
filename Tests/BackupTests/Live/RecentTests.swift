import ATProtocol
import Archive
internal import Files
import HTTP
import IPLD
import StandIn
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Live
@testable import Snapshots

@Suite(.timeLimit(.minutes(15))) struct `A snapshot that was current a short while ago` {
  private let account: StandInAccount
  private let scene: AccountScene

  init() throws {
    account = try StandInAccount("alice", posts: 3, blobs: 2)
    scene = try AccountScene([account])
  }

  private var requests: Int { scene.server.server.log.count }

  /// Backs up at an hour of a day, unless that was done this many hours ago.
  private func backUp(
    at hour: Int, within hours: Int? = nil, byHandle: Bool = false, into file: String? = nil
  ) async throws -> BackupReport {
    var options = scene.options
    options.now = { "2026-03-04T\(hour < 10 ? "0" : "")\(hour):00:00Z" }
    options.maximumAge = hours.map { Int64($0) * 3600 }
    let backup = AccountBackup(network: try scene.network(), options: options) { _ in }
    let name = try ATIdentifier(byHandle ? account.handle : account.did)
    return try await backup.run(
      name, into: file.map { .file(scene.path($0)) } ?? .folder(scene.archives))
  }

  @Test(arguments: [true, false], [nil, "a.car.zst"])
  func `is not asked about, and the report has its state`(byHandle: Bool, file: String?)
    async throws
  {
    #expect(try await backUp(at: 1, within: 5, into: file).outcome == .complete)
    let before = requests
    for hour in [1, 2, 6] {
      let report = try await backUp(at: hour, within: 5, byHandle: byHandle, into: file)
      #expect(report.outcome == .recent)
      #expect(report.snapshot.commit == account.head)
      #expect(report.snapshot.isWhole)
    }
    #expect(requests == before)
    // Too long ago, or yet to come.
    #expect(try await backUp(at: 7, within: 5, byHandle: byHandle, into: file).outcome == .upToDate)
    #expect(requests > before)
    #expect(try await backUp(at: 0, within: 5, byHandle: byHandle, into: file).outcome == .upToDate)
  }

  @Test func `is asked about where nobody says otherwise`() async throws {
    _ = try await backUp(at: 1)
    #expect(try await backUp(at: 1).outcome == .upToDate)
    #expect(try await backUp(at: 1, within: 0).outcome == .recent)
  }

  @Test func `counts from when a backup found nothing new, as long as it is the newest`()
    async throws
  {
    let path = try await backUp(at: 1).path
    #expect(try await backUp(at: 10, within: 2).outcome == .upToDate)
    let snapshot = try scene.snapshot(path)
    let did = snapshot.snapshot.did
    let mark = ArchiveMark.current.time(of: did, about: snapshot.cid, on: path)
    if mark == nil {
      // The file system has no extended attributes: the snapshot's own time counts.
      #expect(try await backUp(at: 11, within: 2).outcome == .upToDate)
    } else {
      #expect(try await backUp(at: 11, within: 2).outcome == .recent)
      ArchiveMark.current.put(
        "2026-03-04T11:00:00Z", of: did, about: CID.blob([1]), on: path)
      #expect(try await backUp(at: 11, within: 2).outcome == .upToDate)
    }
  }

  @Test func `says that blobs are missing, and which`() async throws {
    let lost = try #require(account.blobs.keys.first)
    account.lose(lost)
    #expect(try await backUp(at: 1, within: 5).outcome == .incomplete)
    let report = try await backUp(at: 2, within: 5)
    #expect(report.outcome == .recent)
    #expect(!report.snapshot.isWhole)
    #expect(report.missing.map(\.cid) == [lost])
  }

  @Test func `is as old as the backup that made it, whatever a fill asked since`() async throws {
    let lost = try #require(account.blobs.keys.first)
    account.lose(lost)
    let path = try await backUp(at: 1).path
    let current = try #require(try scene.snapshot(path).lastCurrent(in: path))
    try await scene.backup().fill(path) { _, _ in }
    let after = try #require(try scene.snapshot(path).lastCurrent(in: path))
    #expect(!current.begins(before: after) && !after.begins(before: current))
  }

  @Test func `is asked about if what is stored is damaged`() async throws {
    let path = try await backUp(at: 1, into: "a.car.zst").path
    var bytes = try scene.folder.read("a.car.zst")
    bytes[bytes.count / 2] ^= 1
    try scene.folder.write("a.car.zst", bytes)
    let before = requests
    let report = try await backUp(at: 2, within: 5, into: "a.car.zst")
    #expect(report.outcome != .recent)
    #expect(requests > before)
    #expect(report.path == path)
  }
}
