import ATProtocol
import ArchiveTestSupport
import Copying
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@testable import Archive

@Suite struct `A new archive of what is left` {
  private static let options = RepositoryPacker.Options(
    tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })

  private struct Salvaged {
    let reader: ArchiveReader
    let report: ArchiveCopier.SalvageReport
    let path: FilePath
  }

  private func salvage(_ bytes: [UInt8], in folder: TemporaryFolder) throws -> Salvaged {
    let damaged = try folder.write("damaged.car.zst", bytes)
    let path = FilePath(folder.file("salvaged.car.zst"))
    let report = try ArchiveCopier().salvage(
      ArchiveReader(path: FilePath(damaged)), into: FileStorage.openOrCreate(path),
      by: Self.options.provenance)
    #expect(try folder.read("damaged.car.zst") == bytes)
    return Salvaged(reader: try ArchiveReader(path: path), report: report, path: path)
  }

  /// Four snapshots of two accounts, with blobs small and large.
  private func series() throws -> Series {
    var random = SeededGenerator(printing: 0x5a1_0001)
    var series = try Series()
    var alice = try TestRepository(posts: 120)
    var bob = try TestRepository(posts: 40)
    bob.did = "did:plc:z72i7hdynmk6r22z27h6tvur"
    let blobs = [random.bytes(300), random.bytes(100_000), random.bytes(5_000_000)]
    for (number, blob) in blobs.enumerated() {
      try alice.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
    }
    let files = Dictionary(uniqueKeysWithValues: blobs.enumerated().map { ("\($0)", $1) })
    try series.pack(alice.car(), blobs: files)
    try series.pack(bob.car())
    alice.rev = "3lscuqc52or3x"
    try alice.add("app.bsky.feed.like/1", ["n": .integer(1)])
    try series.pack(alice.car())
    alice.rev = "3lscuqc52or4x"
    try alice.add("app.bsky.feed.like/2", ["n": .integer(2)])
    try series.pack(alice.car())
    return series
  }

  @Test func `of an archive that lost nothing is the same in content`() throws {
    let series = try series()
    let salvaged = try salvage(series.bytes, in: series.folder)
    #expect(salvaged.report.isWhole)
    #expect(salvaged.report.snapshots.compactMap(\.old) == series.heads)
    for (outcome, head) in zip(salvaged.report.snapshots, series.heads) {
      let restored = try RestoredRepository(ArchivedSnapshot(outcome.new, in: salvaged.reader))
      #expect(restored.isExact)
      let car = restored.withBytes { $0.array }
      #expect(car == series.cars[head])
    }
    #expect(try SnapshotVerifier().verify(salvaged.reader, .full).verdict == .intact)
    #expect(try ZstdProgram.accepts(salvaged.path.string))
  }

  @Test func `holds everything outside the damage, and says by name what was inside`() throws {
    let series = try series()
    let bytes = try series.bytes
    let reader = try series.reader
    // What lies in which frame, as the undamaged archive tells.
    var bodies: [CID: UInt64] = [:]
    for ordinal in 0..<reader.generation.sectionCount {
      let section = try reader.section(at: ordinal)
      bodies[section.cid] = section.bodyLength
    }
    var random = SeededGenerator(printing: 0x5a1_0002)
    var lostCounts: [Int] = []
    for place in stride(from: 100, to: bytes.count, by: bytes.count / 60) {
      var damaged = bytes
      let hole = min(bytes.count, place + 1 + Int(random.next() % 400))
      damaged.replaceSubrange(place..<hole, with: random.bytes(hole - place))
      let salvaged: Salvaged
      do {
        salvaged = try salvage(damaged, in: series.folder)
      } catch {
        Issue.record("a hole at \(place): \(error)")
        continue
      }
      // What the damaged archive still gives is in the new one.
      let left = try ArchiveReader(path: FilePath(series.folder.file("damaged.car.zst")))
      let manifests = Set(series.heads)
      var lost: [CID] = []
      for cid in bodies.keys where !manifests.contains(cid) {
        let isLeft: Bool
        do {
          isLeft = try left.body(of: cid) != nil
        } catch {
          isLeft = false
        }
        let isSaved = try salvaged.reader.body(of: cid) != nil
        if isLeft != isSaved { Issue.record("a hole at \(place): \(cid) is not as it was") }
        if !isSaved { lost.append(cid) }
      }
      lostCounts.append(lost.count)
      // The new archive is in order, and says that something is missing only if it is.
      let verified = try SnapshotVerifier().verify(salvaged.reader, .full)
      let commits = Set(
        try series.heads.map { try ArchivedSnapshot($0, in: reader).snapshot.commit })
      if commits.isDisjoint(with: lost) {
        #expect(verified.verdict != .damaged, "a hole at \(place): \(verified.damage)")
      }
      for outcome in salvaged.report.snapshots where outcome.loss.isNone {
        let restored = try RestoredRepository(ArchivedSnapshot(outcome.new, in: salvaged.reader))
        #expect(restored.isExact)
        let car = restored.withBytes { $0.array }
        if let old = outcome.old { #expect(car == series.cars[old]) }
      }
      if !lost.isEmpty { #expect(!salvaged.report.isWhole) }
    }
    #expect(lostCounts.max() ?? 0 > 0)
  }

  @Test func `of one whose newest manifest is lost has all other snapshots`() throws {
    let series = try series()
    var damaged = try series.bytes
    let head = try #require(try series.reader.generation.head)
    damaged[Int(head.frameOffset) + 30] ^= 1
    let salvaged = try salvage(damaged, in: series.folder)
    #expect(salvaged.report.snapshots.compactMap(\.old) == Array(series.heads.dropLast()))
    #expect(salvaged.report.lostSnapshots.count == 1)
    #expect(!salvaged.report.snapshots.map(\.loss.isNone).contains(false))
    #expect(salvaged.report.snapshotCount == series.heads.count)
    #expect(try SnapshotVerifier().verify(salvaged.reader, .full).verdict == .intact)
  }

  @Test func `of something that is no archive is refused`() throws {
    let folder = try TemporaryFolder()
    #expect(throws: (any Error).self) { try salvage([1, 2, 3], in: folder) }
  }
}

@Suite struct `A new archive of one generation` {
  @Test func `whose manifest and first frame are lost has what is left`() throws {
    var random = SeededGenerator(printing: 0x5a1_0003)
    var series = try Series()
    var alice = try TestRepository(posts: 120)
    let blob = random.bytes(100_000)
    try alice.add("app.bsky.feed.post/b", blob: .blob(blob), size: blob.count)
    try series.pack(alice.car(), blobs: ["1": blob])
    let head = try #require(try series.reader.generation.head)
    var damaged = try series.bytes
    for place in Int(head.frameOffset)..<damaged.count { damaged[place] = 0 }
    for place in 0..<72 { damaged[place] = 0 }
    let path = FilePath(try series.folder.write("damaged.car.zst", damaged))
    let new = FilePath(series.folder.file("new.car.zst"))
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
    let report = try ArchiveCopier().salvage(
      ArchiveReader(path: path), into: FileStorage.openOrCreate(new), by: options.provenance)
    #expect(report.snapshots.count == 1 && !report.isWhole)
    let reader = try ArchiveReader(path: new)
    let verified = try SnapshotVerifier().verify(reader, .full)
    #expect(verified.verdict != .damaged, "\(verified.damage)")
    #expect(try reader.body(of: .blob(blob)) == blob)
    let entry = try #require(try SnapshotHistory(of: reader).newest)
    #expect(entry.counts.records == 121)
  }

  @Test func `has CARs bit for bit of which only the numbers of the blocks are lost`() throws {
    var random = SeededGenerator(printing: 0x5a1_0005)
    var series = try Series()
    let alice = try TestRepository(posts: 120)
    let car = try alice.car()
    try series.pack(car)
    let whole = try series.bytes
    let copy = try ArchiveReader(MappedFile(copying: whole))
    let generation = try series.reader.generation
    // The pack is lost, and written again from the copy; then the first index is lost.
    var damaged = whole
    let head = try #require(generation.head)
    let pack = Int(head.frameOffset) - 2000..<Int(head.frameOffset)
    damaged.replaceSubrange(pack, with: random.bytes(pack.count))
    let path = FilePath(try series.folder.write("again.car.zst", damaged))
    do {
      let repaired = try ArchiveRepair.repair(FileStorage.open(path), from: [copy])
      #expect(repaired.damage == nil)
    }
    damaged = try series.folder.read("again.car.zst")
    let index = Int(try #require(generation.segments.first).offset)
    damaged.replaceSubrange(
      index..<Int(generation.committedLength),
      with: random.bytes(Int(generation.committedLength) - index))
    let storage = MemoryStorage()
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
    _ = try ArchiveCopier().salvage(
      ArchiveReader(MappedFile(copying: damaged)), into: storage, by: options.provenance)
    let reader = try ArchiveReader(storage.map())
    let entry = try #require(try SnapshotHistory(of: reader).newest)
    let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
    #expect(restored.isExact && restored.withBytes { $0.array } == car)
    #expect(try SnapshotVerifier().verify(reader, .full).verdict != .damaged)
  }

  @Test func `of which every commit is lost has each of its snapshots`() throws {
    var series = try Series()
    var alice = try TestRepository(posts: 40)
    for (number, rev) in ["2x", "3x", "4x"].enumerated() {
      alice.rev = "3lscuqc52or\(rev)"
      try alice.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      try series.pack(alice.car())
    }
    let reader = try series.reader
    var damaged = try series.bytes
    let commits = try series.heads.map { try ArchivedSnapshot($0, in: reader).snapshot.commit }
    for frame in try Survey(MappedFile(copying: damaged)).frames {
      let range = Int(frame.offset)..<Int(frame.end)
      let ordinals = frame.firstOrdinal..<frame.firstOrdinal + UInt64(frame.sectionCount)
      let isHit = try ordinals.contains { commits.contains(try reader.section(at: $0).cid) }
      if isHit { for place in range.dropFirst(9) { damaged[place] = 0x55 } }
    }
    let path = FilePath(try series.folder.write("damaged.car.zst", damaged))
    let new = FilePath(series.folder.file("new.car.zst"))
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
    let report = try ArchiveCopier().salvage(
      ArchiveReader(path: path), into: FileStorage.openOrCreate(new), by: options.provenance)
    #expect(report.snapshots.compactMap(\.old) == series.heads)
    let entries = try SnapshotHistory(of: ArchiveReader(path: new)).entries
    #expect(entries.compactMap(\.rev?.text) == ["3lscuqc52or2x", "3lscuqc52or3x", "3lscuqc52or4x"])
  }
}
