import ATProtocol
import ArchiveTestSupport
import Foundation
import IPLD
internal import Packing
import SystemPackage
import TestSupport
import Testing

@testable import Archive
@testable import Copying
@testable import Files
@testable import Snapshots
@testable import Verification

/// Two archives, one after the other, which are a valid zstd stream.
@Suite struct `Archives glued together` {
  private let provenance = RepositoryPacker.Options(
    tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 }
  ).provenance

  private func series(_ did: String, _ count: Int, posts: Int) throws -> Series {
    var series = try Series()
    var repository = try TestRepository(posts: posts)
    repository.did = did
    for number in 0..<count {
      repository.rev = "3lscuqc52or\(number + 2)x"
      try repository.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      let blob = [UInt8](repeating: UInt8(number), count: 900 + posts)
      try repository.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
      try series.pack(repository.car(), blobs: ["\(posts) \(number)": blob])
    }
    return series
  }

  /// Three archives, of which one was written by a repair.
  private func archives() throws -> [Series] {
    let (alice, bob) = ("did:plc:ewvi7nxzyoun6zhxrhs64oiz", "did:plc:z72i7hdynmk6r22z27h6tvur")
    let archives = [
      try series(alice, 1, posts: 20), try series(bob, 3, posts: 33),
      try series(alice, 4, posts: 9),
    ]
    // One that was repaired without its footers counts its generations from 1 again.
    var bytes = try archives[2].bytes
    for seen in try Survey(MappedFile(copying: bytes)).footers {
      for index in seen.frame.range { bytes[index] = 0 }
    }
    try archives[2].folder.write("a.car.zst", bytes)
    _ = try ArchiveRepair.repair(FileStorage.open(archives[2].path))
    return archives
  }

  private func check(_ reader: ArchiveReader, _ all: [Series], _ comment: Comment) throws {
    #expect(try SnapshotVerifier().verify(reader, .full).verdict == .intact, comment)
    let entries = try SnapshotHistory(of: reader).entries
    #expect(entries.count == Set(all.flatMap(\.cars.values)).count, comment)
    for car in all.flatMap(\.cars.values) {
      let digest = SHA256.digest(of: car.span)
      guard let entry = entries.first(where: { $0.carSHA256 == digest }) else {
        Issue.record("\(comment): a snapshot is gone")
        continue
      }
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
      let isSame = restored.withBytes { $0.array } == car
      #expect(isSame, comment)
    }
  }

  @Test func `all come back in a new one, and are left alone in place`() throws {
    let archives = try archives()
    let folder = archives[0].folder
    for order in [[0, 1], [1, 0], [1, 2], [2, 1], [0, 2], [2, 0], [0, 1, 2], [2, 1, 0]] {
      let all = order.map { archives[$0] }
      let glued = try all.flatMap { try $0.bytes }
      let path = try folder.write("glued.car.zst", glued)
      let comment: Comment = "\(order)"
      let reader = try ArchiveReader(path: FilePath(path))
      #expect(try SnapshotVerifier().verify(reader, .full).verdict == .damaged, comment)
      #expect(throws: ArchiveError.self, comment) {
        try ArchiveRepair.repair(FileStorage.open(FilePath(path)))
      }
      #expect(try folder.read("glued.car.zst") == glued, comment)
      let new = FilePath(folder.file("new.car.zst"))
      let report = try ArchiveCopier().salvage(
        reader, into: FileStorage.openOrCreate(new), by: provenance)
      #expect(report.isWhole, comment)
      try check(ArchiveReader(path: new), all, comment)
      // Nothing is appended to them.
      var next = try TestRepository(posts: 3)
      next.rev = "3lscuqc52orzx"
      let input = try folder.write("next.car", next.car())
      var options = RepositoryPacker.Options(
        tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
      options.startsOver = false
      #expect(throws: (any Error).self, comment) {
        try RepositoryPacker(options).pack(
          InputFile(input), folders: [], into: FileStorage.open(FilePath(path)))
      }
      #expect(try folder.read("glued.car.zst") == glued, comment)
    }
  }

  @Test func `that are the same one are that one`() throws {
    let archive = try archives()[1]
    let bytes = try archive.bytes
    try archive.folder.write("a.car.zst", bytes + bytes)
    let report = try ArchiveRepair.repair(FileStorage.open(archive.path))
    #expect(report.damage == nil && report.archive.bytesCutOff == UInt64(bytes.count))
    #expect(try archive.bytes == bytes)
  }

  @Test func `are told by their headers where all footers near are lost`() throws {
    let archives = try archives()
    var bytes = try archives[0].bytes
    for seen in try Survey(MappedFile(copying: bytes)).footers {
      for index in seen.frame.range { bytes[index] = 0 }
    }
    try archives[0].folder.write("a.car.zst", archives[1].bytes.dropLast(100) + bytes)
    let new = FilePath(archives[0].folder.file("new.car.zst"))
    _ = try ArchiveCopier().salvage(
      archives[0].reader, into: FileStorage.openOrCreate(new), by: provenance)
    try check(ArchiveReader(path: new), Array(archives[..<2]), "in a new one")
  }

  @Test func `are no more for bytes before the first`() throws {
    let archive = try archives()[1]
    let bytes = try archive.bytes
    for length in [1, 16, 512, 4096] {
      let rubble = [UInt8](repeating: 0xaa, count: length)
      try archive.folder.write("a.car.zst", rubble + bytes)
      let new = FilePath(archive.folder.file("new.car.zst"))
      _ = try ArchiveCopier().salvage(
        archive.reader, into: FileStorage.openOrCreate(new), by: provenance)
      try check(ArchiveReader(path: new), [archive], "\(length) bytes")
      _ = try ArchiveRepair.repair(FileStorage.open(archive.path))
      let entries = try SnapshotHistory(of: archive.reader).entries
      #expect(entries.count == archive.cars.count, "\(length) bytes")
    }
  }

  @Test func `with an older piece of the first behind it lose nothing of the newer`() throws {
    let archive = try archives()[2]
    var next = try TestRepository(posts: 9)
    let old = try archive.bytes
    var series = archive
    for (number, digit) in [(5, "a"), (6, "b")] {
      next.rev = "3lscuqc52or\(digit)x"
      try next.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      try series.pack(next.car())
    }
    let whole = try series.bytes
    var random = SeededGenerator(printing: 0x91ed_0001)
    for round in 0..<12 {
      let start = Int.random(in: 1..<old.count, using: &random)
      try series.folder.write("a.car.zst", whole + old[start...])
      let comment: Comment = "\(round): from \(start)"
      let reader = try series.reader
      let new = FilePath(series.folder.file("new.car.zst"))
      _ = try ArchiveCopier().salvage(
        reader, into: FileStorage.openOrCreate(new), by: provenance)
      try check(ArchiveReader(path: new), [series], "\(comment), in a new one")
      let outcome = try? ArchiveRepair.repair(FileStorage.open(series.path))
      guard let outcome, outcome.damage == nil else { continue }
      try check(series.reader, [series], "\(comment), in place")
    }
  }
}
