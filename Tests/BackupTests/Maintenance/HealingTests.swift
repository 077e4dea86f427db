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

/// An archive of three snapshots, one of whose frames is damaged in every test.
@Suite struct `A damaged archive` {
  private let series: Series
  private let bytes: [UInt8]
  private let blobs: [String: [UInt8]]

  init() throws {
    var random = SeededGenerator(printing: 0x4ea1_0001)
    var series = try Series()
    let bodies = [random.bytes(300), random.bytes(100_000), random.bytes(9_000_000)]
    blobs = Dictionary(
      uniqueKeysWithValues: bodies.enumerated().map { ("\($0)", $1) } + [("extra", [7, 7, 7])])
    var alice = try TestRepository(posts: 400)
    for (number, blob) in bodies.enumerated() {
      try alice.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
    }
    for (number, rev) in ["3lscuqc52or2x", "3lscuqc52or3x", "3lscuqc52or4x"].enumerated() {
      alice.rev = rev
      try alice.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      try series.pack(alice.car(), blobs: number == 0 ? blobs : [:]) { $0.keepsExtras = true }
    }
    self.series = series
    bytes = try series.bytes
  }

  /// Every frame of the index, with what it holds.
  private func frames() throws -> [(range: Range<Int>, sections: [CID])] {
    let reader = try series.reader
    let entries = try reader.withFile { (file) in reader.index.frames(in: file) }
    return try entries.indices.map { number in
      let entry = entries[number]
      return (
        Int(entry.offset)..<Int(entry.end),
        try reader.ordinals(of: number, in: entries).map { try reader.section(at: $0).cid }
      )
    }
  }

  private func write(_ bytes: [UInt8]) throws { try series.folder.write("a.car.zst", bytes) }

  private func verdict() throws -> SnapshotVerifier.Verdict {
    try SnapshotVerifier().verify(series.reader, .full).verdict
  }

  /// Every snapshot is unchanged, nothing is damaged, and a compacted copy is a normal archive.
  private func checkHealed(_ comment: Comment) throws {
    #expect(try verdict() == .intact, comment)
    let reader = try series.reader
    #expect(try reader.damagedSections().isEmpty, comment)
    for head in series.heads {
      let restored = try RestoredRepository(ArchivedSnapshot(head, in: reader))
      #expect(restored.withBytes { $0.array } == series.cars[head], comment)
    }
    for blob in blobs.values { #expect(try reader.body(of: .blob(blob)) == blob, comment) }
    let copy = FilePath(series.folder.file("copy.car.zst"))
    _ = try ArchiveCopier().compact(
      series.path, to: AtomicFile(copy, replacing: true))
    let compacted = try ArchiveReader(path: copy)
    #expect(!compacted.generation.features.isRepaired, comment)
    #expect(try SnapshotVerifier().verify(compacted, .full).verdict == .intact, comment)
    #expect(try ZstdProgram.accepts(copy.string), comment)
  }

  @Test func `is salvaged after its manifests were mended, each of which it holds twice then`()
    throws
  {
    for (range, sections) in try frames() where series.heads.contains(sections[0]) {
      var damaged = bytes
      damaged[range.lowerBound + range.count / 2] ^= 1
      try write(damaged)
      let copy = try ArchiveReader(MappedFile(copying: bytes))
      _ = try ArchiveRepair.repair(FileStorage.open(series.path), from: [copy])
      let new = FilePath(series.folder.file("new.car.zst"))
      let options = RepositoryPacker.Options(
        tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
      let report = try ArchiveCopier().salvage(
        series.reader, into: FileStorage.openOrCreate(new), by: options.provenance)
      #expect(report.isWhole && report.snapshots.count == series.heads.count)
      let salvaged = try ArchiveReader(path: new)
      #expect(try SnapshotVerifier().verify(salvaged, .full).verdict == .intact)
    }
  }

  @Test func `is mended by packing what it was packed from`() throws {
    let manifests = Set(series.heads)
    for (range, sections) in try frames() where manifests.isDisjoint(with: sections) {
      let place = (range.lowerBound + range.upperBound) / 2
      var damaged = bytes
      damaged[place] ^= 0x10
      try write(damaged)
      var series = series
      let comment: Comment = "byte \(place) of \(range)"
      #expect(try verdict() == .damaged, comment)
      // The newest CAR does not have what went with the snapshots before it.
      for head in [2, 0, 1, 2] {
        let car = try #require(series.cars[series.heads[head]])
        let report = try series.pack(car, blobs: blobs) { $0.keepsExtras = true }
        #expect(report.generation.features.isRepaired || !report.isHealed, comment)
        let isSound = try series.reader.damagedSections().isEmpty
        #expect(report.damage.isNone || !isSound, comment)
        if isSound { break }
      }
      #expect(try Array(self.series.bytes[..<bytes.count]) == damaged, comment)
      try checkHealed(comment)
      // There is nothing to do any more.
      let head = try #require(series.heads.last)
      let newest = try #require(series.cars[head])
      let again = try series.pack(newest, blobs: blobs) { $0.keepsExtras = true }
      #expect(again.isUnchanged && !again.isHealed && again.bytesAdded == 0, comment)
    }
  }

  @Test func `is mended by another archive that has what is lost`() throws {
    let copy = try ArchiveReader(path: FilePath(series.folder.write("other.car.zst", bytes)))
    for (number, frame) in try frames().enumerated() {
      let range = frame.range
      let length = [1, 200][number % 2]
      let place = range.upperBound - min(length, range.count)
      var damaged = bytes
      for index in place..<min(place + length, range.upperBound) { damaged[index] ^= 0x55 }
      try write(damaged)
      let comment: Comment = "\(length) bytes from \(place)"
      let report = try ArchiveRepair.repair(FileStorage.open(series.path), from: [copy])
      #expect(report.archive.firstLost == nil, comment)
      #expect(report.archive.sectionsHealed > 0, comment)
      #expect(try ZstdProgram.accepts(series.path.string), comment)
      try checkHealed(comment)
      let mended = try series.bytes
      _ = try ArchiveRepair.repair(FileStorage.open(series.path), from: [copy])
      #expect(try series.bytes == mended, comment)
    }
  }

  @Test func `whose frame has lost nothing but its checksum is mended without any source`() throws {
    for (range, _) in try frames() {
      var damaged = bytes
      damaged[range.upperBound - 1] ^= 0x55
      try write(damaged)
      let reader = try series.reader
      let isPack = try reader.withFile { (file) throws in
        try DataFrame(file, at: range.lowerBound, limit: range.upperBound).contentSize < 1 << 16
      }
      guard isPack else { continue }
      let comment: Comment = "the frame at \(range)"
      let report = try ArchiveRepair.repair(FileStorage.open(series.path))
      #expect(report.archive.firstLost == nil, comment)
      #expect(try ZstdProgram.accepts(series.path.string), comment)
      try checkHealed(comment)
    }
  }

  @Test func `is mended by the next pack if the power failed while it was being mended`() throws {
    let newest = try #require(series.cars[series.heads[2]])
    let (range, _) = try #require(
      try frames().first { $0.sections == [CID.blob(blobs["1"] ?? [])] })
    var damaged = bytes
    damaged[range.upperBound - 9] ^= 1
    try write(damaged)
    var series = series
    let healed = try series.pack(newest, blobs: blobs).generation
    let mended = try series.bytes
    let segment = try #require(healed.segments.last)
    for length in [segment.offset, healed.footerOffset, healed.footerOffset + 50] {
      try write(Array(mended[..<Int(length)]))
      _ = try series.pack(newest, blobs: blobs)
      #expect(try verdict() == .intact, "cut off at \(length)")
      #expect(try series.reader.generation.features.isRepaired)
    }
  }

  @Test func `whose newest snapshot is lost takes the next, and says that something is damaged`()
    throws
  {
    let last = series.heads[2]
    let lost = try #require(try frames().first { $0.sections == [last] })
    var damaged = bytes
    damaged[lost.range.upperBound - 9] ^= 1
    try write(damaged)
    var series = series
    let report = try series.pack(try #require(series.cars[last]))
    #expect(!report.isUnchanged && report.damage.sectionCount == 1)
    let history = try SnapshotHistory(of: series.reader)
    #expect(history.entries.map(\.cid) == [series.heads[0], series.heads[1], series.heads[3]])
    #expect(history.entries.map(\.isVouched) == [true, true, true])
    #expect(history.breaks.count == 1)
  }

  @Test func `that is given only a part of what is lost says what is damaged still`() throws {
    let large = try #require(blobs["2"])
    let lost = try frames().filter { $0.sections == [CID.blob(large)] }
    #expect(lost.count == 3)
    var damaged = bytes
    for (range, _) in lost { damaged[range.upperBound - 9] ^= 1 }
    try write(damaged)
    let snapshot = try ArchivedSnapshot.newest(in: series.reader)
    let missing = try snapshot.missingNow().blobs
    #expect(missing.map(\.blob.cid) == [CID.blob(large)])
    #expect(missing.first?.damage != nil && missing.first?.blob.reason == .lost)
    var series = series
    let newest = try #require(series.cars[series.heads[2]])
    let report = try series.pack(newest)
    #expect(report.missing.map(\.cid) == [CID.blob(large)])
    #expect(report.missing.map(\.reason) == [.lost])
    #expect(try verdict() == .damaged)
    // A file that comes later mends it anyway.
    #expect(try series.pack(newest, blobs: ["2": large]).isHealed)
    #expect(try verdict() == .intact)
  }
}
