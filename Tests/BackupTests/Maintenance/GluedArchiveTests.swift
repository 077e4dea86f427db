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

  /// The bytes of each archive, plain and sealed.
  private func forms(_ archives: [Series]) throws -> [[[UInt8]]] {
    let seal = try TestSeal()
    return try archives.map { series in
      let bytes = try series.bytes
      let file = try FileStorage.openOrCreate(FilePath(series.folder.file("sealed")))
      let storage = try seal.archive(in: file)
      try storage.write(bytes.span, at: 0)
      try storage.commit()
      return [bytes, try series.folder.read("sealed")]
    }
  }

  /// Orders of archives, and for each whether the archives in it are sealed.
  private static let orders: [(order: [Int], sealed: [Int])] = {
    let pairs = [[0, 1], [1, 0], [1, 2], [2, 1], [0, 2], [2, 0]]
    let (two, three) = (
      [[0, 0], [0, 1], [1, 0], [1, 1]], [[0, 0, 0], [0, 1, 0], [1, 0, 1]]
    )
    let rows = [[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    return pairs.flatMap { order in two.map { (order, $0) } }
      + (three + rows).flatMap { sealed in [([0, 1, 2], sealed), ([2, 1, 0], sealed)] }
  }()

  @Test func `all come back in a new one, and are left alone in place`() throws {
    let archives = try archives()
    let forms = try forms(archives)
    let folder = archives[0].folder
    for (order, sealed) in Self.orders {
      let all = order.map { archives[$0] }
      let parts = zip(order, sealed).map { forms[$0][$1] }
      let glued = parts.flatMap(\.self)
      let path = try FilePath(folder.write("glued.car.zst", glued))
      let comment: Comment = "\(order), \(sealed)"
      let expected = ArchiveError(.furtherArchive, offset: UInt64(parts[0].count))
      let reader = try ArchiveReader(path: path)
      let verification = try SnapshotVerifier().verify(reader, .full)
      #expect(verification.verdict == .damaged, comment)
      #expect(verification.archive.findings.map(\.error).contains(expected), comment)
      #expect(throws: expected, comment) { try reader.refuseFurtherArchives() }
      #expect(throws: expected, comment) { try MappedFile(path).refuseFurtherArchives() }
      #expect(throws: expected, comment) { try SourceArchive(reader, name: "glued") }
      #expect(throws: expected, comment) {
        _ = try ArchiveRepair.healStored(path)
        _ = try ArchiveRepair.align(path)
        _ = try ArchiveRepair.repair(FileStorage.openArchive(path))
      }
      #expect(throws: expected, comment) {
        try ArchiveWriter.protect(FileStorage.openArchive(path), percent: 5)
      }
      #expect(throws: expected, comment) { try ArchiveCopier().compact(path) }
      #expect(try folder.read("glued.car.zst") == glued, comment)
      try salvage(reader, all, isSealed: sealed.contains(1), comment)
      // Nothing is appended to them.
      var next = try TestRepository(posts: 3)
      next.rev = "3lscuqc52orzx"
      let input = try folder.write("next.car", next.car())
      var options = RepositoryPacker.Options(
        tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
      for startsOver in [false, true] {
        options.startsOver = startsOver
        #expect(throws: (any Error).self, comment) {
          try RepositoryPacker(options).pack(
            InputFile(input), folders: [], into: FileStorage.openArchive(path))
        }
        #expect(try folder.read("glued.car.zst") == glued, comment)
      }
    }
  }

  private func salvage(
    _ reader: ArchiveReader, _ all: [Series], isSealed: Bool, _ comment: Comment
  ) throws {
    let new = FilePath(all[0].folder.file("new.car.zst"))
    let target = try AtomicFile(new, replacing: true)
    let (report, _) = try ArchiveCopier().salvage(
      reader.parts(), to: target, by: provenance, willWrite: { _ in })
    #expect(report.isWhole, comment)
    #expect(try (MappedFile(new).layer != nil) == isSealed, comment)
    try check(ArchiveReader(path: new), all, comment)
  }

  @Test func `that cannot be opened are named, and the others are kept`() throws {
    let archives = Array(try archives()[..<2])
    let forms = try forms(archives)
    // Nothing opens it without its key frames.
    var unreadable = forms[0][1]
    let beginning = Array(unreadable[..<28])
    for place in unreadable.indices.dropLast(8192)
    where unreadable[place...].starts(with: beginning) {
      for place in place..<place + 8192 { unreadable[place] = 0xaa }
    }
    for order in [0, 1] {
      let parts = order == 0 ? [unreadable, forms[1][0]] : [forms[1][0], unreadable]
      let path = try FilePath(
        archives[1].folder.write("glued.car.zst", parts.flatMap(\.self)))
      let found = try ArchiveParts(of: MappedFile(path))
      #expect(found.readable.count == 1)
      let place = order == 0 ? 0 : UInt64(parts[0].count)
      #expect(found.unopened.map(\.offset) == [place])
      let new = try FileStorage.openOrCreate(FilePath(archives[1].folder.file("new\(order)")))
      let report = try ArchiveCopier().salvage(found, into: new, by: provenance)
      #expect(!report.isWhole && report.lostSnapshots.count == 1)
      #expect(report.lostSnapshots[0].contains("the archive that begins at byte \(place): "))
      try check(ArchiveReader(new.map()), [archives[1]], "\(order)")
      #expect(throws: (any Error).self) { try ArchiveRepair.repair(FileStorage.openArchive(path)) }
      #expect(try archives[1].folder.read("glued.car.zst") == parts.flatMap(\.self))
    }
    let path = try archives[1].folder.write("glued.car.zst", unreadable + unreadable)
    let error = #expect(throws: (any Error).self) {
      try ArchiveParts(of: MappedFile(FilePath(path)))
    }
    #expect(error is any StorageLayerError)
  }

  @Test func `are none where a blob is a sealed archive, whatever of it is damaged`() throws {
    var random = SeededGenerator(printing: 0x91ed_b10b)
    let folder = try TemporaryFolder()
    let sealed = try TestSeal().archive(
      in: FileStorage.openOrCreate(FilePath(folder.file("sealed"))))
    try sealed.write(random.bytes(200_000).span, at: 0)
    try sealed.commit()
    // Without the frames of its key, which would be compressed.
    let blob = try Array(folder.read("sealed").dropFirst(16_384))
    var series = try series("did:plc:ewvi7nxzyoun6zhxrhs64oiz", 1, posts: 5)
    var repository = try TestRepository(posts: 5)
    repository.rev = "3lscuqc52orax"
    try repository.add("app.bsky.feed.post/sealed", blob: .blob(blob), size: blob.count)
    try series.pack(repository.car(), blobs: ["sealed": blob])
    let bytes = try series.bytes
    let place = try #require(bytes.indices.first { bytes[$0...].starts(with: blob.prefix(64)) })
    let frame = try #require(
      try Survey(series.reader.file).frames.last { $0.offset < UInt64(place) })
    for damaged in [Int(frame.offset), Int(frame.offset) + 5, Int(frame.end) - 1] {
      var hurt = bytes
      hurt[damaged] ^= 0x40
      try series.folder.write("a.car.zst", hurt)
      #expect(try series.reader.furtherArchive == nil, "byte \(damaged)")
      #expect(try series.reader.surveyed().furtherArchive == nil, "byte \(damaged)")
      #expect(try series.reader.parts().readable.count == 1, "byte \(damaged)")
      _ = try ArchiveRepair.repair(FileStorage.open(series.path))
    }
    // Behind it another one is found.
    let glued = bytes + blob
    try series.folder.write("a.car.zst", glued)
    #expect(try series.reader.furtherArchive == UInt64(bytes.count))
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
