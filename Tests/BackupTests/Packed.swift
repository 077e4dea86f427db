import ATProtocol
import Archive
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
    let storage = path
    report = try RepositoryPacker(options).pack(
      InputFile(folder.file("repo.car")),
      folders: blobs.isEmpty ? [] : [BlobFolder(folder.file("blobs"))],
      into: { try FileStorage.create(storage) })
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

/// Writes an archive by hand: blocks in order, one of them spoilt if that is asked for, and a
/// manifest that says what it is told to.
func handMadeArchive(
  in folder: TemporaryFolder, _ repository: TestRepository, further: [Block] = [],
  spoilt: (cid: CID, bytes: [UInt8])? = nil, change: (inout Snapshot) -> Void = { _ in }
) throws -> FilePath {
  let car = try repository.car()
  let header = try CARHeader(car.span)
  let path = FilePath(folder.file("made.car.zst"))
  var writer = try ArchiveWriter.open(
    try FileStorage.create(path), carHeader: Array(car[..<header.length]))
  let blocks = try repository.blocks()
  var order = BlockOrder()
  for block in blocks where !repository.omitted.contains(block.cid) {
    let bytes = spoilt?.cid == block.cid ? spoilt?.bytes ?? [] : block.bytes
    order.append(try writer.append(verified: block.cid, bytes.span))
  }
  for block in further { try writer.append(block.cid, block.bytes.span) }
  var snapshot = try Snapshot.example()
  snapshot.did = try DID(repository.did)
  snapshot.handle = nil
  snapshot.rev = try repository.rev.map { text throws in try TID(text) }
  (snapshot.didDocument, snapshot.plcLog, snapshot.previous) = (nil, nil, nil)
  (snapshot.extrasPages, snapshot.missingPages) = ([], [])
  snapshot.commit = header.roots[0]
  snapshot.blobs = Snapshot.BlobCounts()
  snapshot.unreadable = UnreadableRecords()
  snapshot.counts.records = repository.records.count
  snapshot.describe(car, header: header.length, sectionCount: order.count, order: order.encoded)
  change(&snapshot)
  let bytes = try snapshot.encode()
  let cid = CID(codec: .dagCBOR, hashing: bytes.span)
  try writer.append(cid, bytes.span)
  _ = try writer.commit(manifest: cid)
  return path
}

extension Snapshot {
  /// Takes over what is to be said about a CAR.
  mutating func describe(_ car: [UInt8], header: Int, sectionCount: UInt64, order: [UInt8]) {
    self.car.header = Array(car[..<header])
    self.car.byteCount = UInt64(car.count)
    self.car.sha256 = SHA256.digest(of: car.span)
    self.car.sectionCount = sectionCount
    self.car.order = .inline(order)
  }
}
