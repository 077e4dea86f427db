import ATProtocol
import Archive
import Foundation
import IPLD
import StandIn
import SystemPackage
import TestSupport
import Testing
internal import Verification

@testable import Files
@testable import Live
@testable import Snapshots

/// Runs without news: what they cost, and that they write nothing.
@Suite struct `A backup that learns nothing new` {
  /// An account whose server has lost some blobs, backed up at a time.
  private struct Scene {
    let account: StandInAccount
    let scene: AccountScene
    let lost: [BlobContent]

    init(lost count: Int = 2) async throws {
      account = try StandInAccount("somebody", posts: 6, blobs: 5)
      lost = Array(account.blobs.values.sorted { "\($0.cid)" < "\($1.cid)" }.prefix(count))
      scene = try AccountScene([account])
      for blob in lost { account.lose(blob.cid) }
    }

    var path: FilePath { scene.path("a.car.zst") }

    func bytes() throws -> [UInt8] { try scene.folder.read("a.car.zst") }

    /// Backs up at a time, and returns the result of it and how many requests it took.
    func run(at time: String, fill: Bool = false) async throws -> (BackupReport, requests: Int) {
      let before = scene.server.server.log.count
      let options = AccountBackup.Options(
        tool: "tests", hostSystem: "Linux", now: { time }, milliseconds: { 0 })
      let backup = AccountBackup(network: try scene.network(), options: options) { _ in }
      var report: BackupReport?
      if fill {
        try await backup.fill(path) { _, outcome in
          if case .success(let success) = outcome { report = success }
        }
      } else {
        report = try await backup.run(ATIdentifier(account.did), into: .file(path))
      }
      return (try #require(report), scene.server.server.log.count - before)
    }
  }

  /// Whether files in the folder of the tests may have extended attributes.
  private static func hasAttributes(_ path: FilePath) -> Bool {
    FileAttribute(name: "user.carpack.test").write("x", to: path)
  }

  @Test func `asks two questions within a day, and writes nothing`() async throws {
    let scene = try await Scene()
    #expect(try await scene.run(at: "2026-01-01T00:00:00Z").0.outcome == .incomplete)
    let bytes = try scene.bytes()
    for time in ["2026-01-01T01:00:00Z", "2026-01-01T23:59:59Z"] {
      let (report, requests) = try await scene.run(at: time)
      #expect(requests == 2)
      #expect(report.outcome == .incomplete && report.bytesAdded == 0)
      #expect(report.missing.map(\.reason) == [.notFound, .notFound])
      #expect(try scene.bytes() == bytes)
    }
  }

  @Test func `asks again the next day, writes nothing, and remembers that it did`() async throws {
    let scene = try await Scene()
    _ = try await scene.run(at: "2026-01-01T00:00:00Z")
    let bytes = try scene.bytes()
    let (report, requests) = try await scene.run(at: "2026-01-02T00:00:00Z")
    #expect(requests == 4 && report.bytesAdded == 0 && report.outcome == .incomplete)
    #expect(try scene.bytes() == bytes)
    guard Self.hasAttributes(scene.path) else { return }
    #expect(try await scene.run(at: "2026-01-02T01:00:00Z").requests == 2)
    #expect(try await scene.run(at: "2026-01-02T23:00:00Z").requests == 2)
    #expect(try await scene.run(at: "2026-01-03T00:00:00Z").requests == 4)
    #expect(try scene.bytes() == bytes)
    // What is remembered so is in the ledger of the next snapshot.
    try scene.account.advance()
    let (next, _) = try await scene.run(at: "2026-01-03T12:00:00Z")
    #expect(next.missing.map(\.lastTried) == ["2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z"])
    #expect(next.missing.map(\.firstTried) == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"])
  }

  @Test func `asks each time where nothing can be remembered`() async throws {
    let scene = try await Scene()
    _ = try await scene.run(at: "2026-01-01T00:00:00Z")
    _ = try await scene.run(at: "2026-01-02T00:00:00Z")
    // Copied without attributes.
    let bytes = try scene.bytes()
    try FileManager.default.removeItem(atPath: "\(scene.path)")
    try scene.scene.folder.write("a.car.zst", bytes)
    #expect(try await scene.run(at: "2026-01-02T01:00:00Z").requests == 4)
    #expect(try scene.bytes() == bytes)
  }

  @Test func `asks each time for what may pass, without writing`() async throws {
    let scene = try await Scene(lost: 0)
    let blob = try #require(scene.account.referencedBlobs.min { "\($0)" < "\($1)" })
    scene.scene.server.play(FaultRule(.status(500), on: "getBlob", cid: "\(blob)"))
    let (first, _) = try await scene.run(at: "2026-01-01T00:00:00Z")
    #expect(first.missing.map(\.reason) == [.serverError])
    let bytes = try scene.bytes()
    let (second, requests) = try await scene.run(at: "2026-01-01T01:00:00Z")
    // Two attempts for the blob.
    #expect(requests == 4 && second.outcome == .incomplete)
    #expect(try scene.bytes() == bytes)
    // Another reason is news.
    scene.scene.server.clearFaults()
    scene.account.lose(blob)
    let (third, _) = try await scene.run(at: "2026-01-01T02:00:00Z")
    #expect(third.missing.map(\.reason) == [.notFound] && third.bytesAdded > 0)
    #expect(try scene.scene.verdict(scene.path) == .incomplete)
  }

  @Test(arguments: [false, true])
  func `takes what has come back without the repository`(fill: Bool) async throws {
    let scene = try await Scene()
    _ = try await scene.run(at: "2026-01-01T00:00:00Z")
    scene.account.upload(scene.lost[0])
    let (half, requests) = try await scene.run(at: "2026-01-02T00:00:00Z", fill: fill)
    #expect(half.missing.map(\.cid) == [scene.lost[1].cid] && half.outcome == .incomplete)
    #expect(requests == (fill ? 3 : 4))
    #expect(half.snapshot.blobs.new == 1 && half.snapshot.blobs.held == 4)
    #expect(try scene.scene.verdict(scene.path) == .incomplete)
    scene.account.upload(scene.lost[1])
    let (whole, _) = try await scene.run(at: "2026-01-03T00:00:00Z", fill: fill)
    #expect(whole.outcome == .complete && whole.snapshot.isWhole)
    #expect(try scene.scene.verdict(scene.path) == .intact)
    let history = try SnapshotHistory(of: ArchiveReader(path: scene.path))
    #expect(history.entries.count == 3 && Set(history.entries.map(\.commit)).count == 1)
    let restored = try RestoredRepository(scene.scene.snapshot(scene.path))
    #expect(restored.isExact)
  }

  @Test func `is fill that asks in vain`() async throws {
    let scene = try await Scene()
    _ = try await scene.run(at: "2026-01-01T00:00:00Z")
    let bytes = try scene.bytes()
    for hour in 1...2 {
      let (report, requests) = try await scene.run(at: "2026-01-01T0\(hour):00:00Z", fill: true)
      #expect(requests == 3 && report.outcome == .incomplete)
    }
    #expect(try scene.bytes() == bytes)
  }

  @Test func `asks for the list again, and writes nothing while that fails the same`() async throws
  {
    let scene = try await Scene(lost: 1)
    scene.scene.server.play(FaultRule(.status(501), on: "listBlobs"))
    _ = try await scene.run(at: "2026-01-01T00:00:00Z")
    let bytes = try scene.bytes()
    let (report, requests) = try await scene.run(at: "2026-01-01T01:00:00Z")
    #expect(requests == 3 && report.outcome == .incomplete)
    #expect(report.snapshot.blobs.listFault?.isTransient == false)
    #expect(try scene.bytes() == bytes)
    scene.scene.server.clearFaults()
    let (whole, _) = try await scene.run(at: "2026-01-01T02:00:00Z")
    #expect(whole.snapshot.blobs.listFault == nil && whole.bytesAdded > 0)
    #expect(scene.scene.requestCount("getRepo") == 1)
  }
}
