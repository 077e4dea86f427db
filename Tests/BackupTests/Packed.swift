import ATProtocol
import Archive
import ArchiveTestSupport
import Files
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Verification

/// An archive that was packed for a test, in a folder of its own.
struct Packed {
  let folder: TemporaryFolder
  let car: [UInt8]
  let report: RepositoryPacker.Report
  let path: FilePath

  /// Packs a CAR with the files of a folder of blobs.
  init(
    car: [UInt8], blobs: [String: [UInt8]] = [:], extras: Bool = false,
    facts: AccountFacts = AccountFacts()
  ) throws {
    folder = try TemporaryFolder()
    self.car = car
    try folder.write("repo.car", car)
    for (name, content) in blobs { try folder.write("blobs/\(name)", content) }
    path = FilePath(folder.file("a.car.zst"))
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    options.keepsExtras = extras
    options.facts = facts
    options.startsOver = true
    report = try RepositoryPacker(options).pack(
      InputFile(folder.file("repo.car")),
      folders: blobs.isEmpty ? [] : [BlobFolder(folder.file("blobs"))],
      into: FileStorage.create(path))
  }

  /// A reader of the archive.
  var reader: ArchiveReader { get throws { try ArchiveReader(path: path) } }

  /// The snapshot in the archive.
  var snapshot: ArchivedSnapshot { get throws { try ArchivedSnapshot.newest(in: reader) } }

  /// The bytes of the archive.
  var bytes: [UInt8] { get throws { try folder.read("a.car.zst") } }

  /// The CAR as it is given back.
  func restoredCAR() throws -> [UInt8] {
    let restored = try RestoredRepository(snapshot)
    return restored.withBytes { $0.array }
  }

  /// Verifies the archive.
  func verify(_ depth: SnapshotVerifier.Depth = .full) throws -> SnapshotVerifier.Report {
    try SnapshotVerifier().verify(reader, depth)
  }
}
