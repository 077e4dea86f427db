import ATProtocol
import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Restore

@Suite struct `The journal of a restore` {
  private let folder: TemporaryFolder
  private var path: FilePath { FilePath(folder.file("a.restore.json")) }

  init() throws { folder = try TemporaryFolder() }

  private func journal() throws -> RestoreJournal {
    RestoreJournal(
      path: path, did: try DID("did:plc:z72i7hdynmk6r22z27h6tvur"), from: nil,
      to: "https://new.test", manifest: nil, commit: .blob([1]))
  }

  private func expectBusy(_ body: () throws -> Void) {
    #expect {
      try body()
    } throws: { error in
      guard case RestoreError.busy(path.string) = error else { return false }
      return true
    }
  }

  @Test func `is one run's at a time`() throws {
    var first: RestoreJournal? = try journal()
    try first?.save()
    try first?.note(.server, "there", at: "2026-01-01T00:00:00Z")
    expectBusy { _ = try RestoreJournal(at: path) }
    first = nil
    var second = try RestoreJournal(at: path)
    #expect(second?.has(.server) == true)
    expectBusy { _ = try RestoreJournal(at: path) }
    try second?.note(.account, "made", at: "2026-01-01T00:00:01Z")
    expectBusy { _ = try RestoreJournal(at: path) }
  }

  @Test func `is begun by one run only`() throws {
    var (first, second) = (try journal(), try journal())
    try first.save()
    expectBusy { try second.save() }
    try first.save()
    #expect(folder.names() == ["a.restore.json"])
  }

  @Test func `is for its owner alone`() throws {
    var journal = try journal()
    try journal.save()
    let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }
}
