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

/// An archive of five snapshots, each in a generation, and footers that are lost: whole, or so that
/// something is left of them.
@Suite struct `An archive whose footers are lost` {
  private let series: Series
  private let bytes: [UInt8]
  private let footers: [SkippableFrame]

  init() throws {
    var random = SeededGenerator(printing: 0x10f0_0001)
    var series = try Series()
    var alice = try TestRepository(posts: 20)
    for (number, rev) in ["2x", "3x", "4x", "5x", "6x"].enumerated() {
      alice.rev = "3lscuqc52or\(rev)"
      let blob = random.bytes(400)
      try alice.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
      try series.pack(alice.car(), blobs: ["\(number)": blob])
    }
    (self.series, bytes) = (series, try series.bytes)
    footers = try Survey(MappedFile(copying: bytes)).footers.map(\.frame)
  }

  /// Packs another state of the account.
  private func packNext(into storage: MemoryStorage) throws {
    var alice = try TestRepository(posts: 20)
    alice.rev = "3lscuqc52or7x"
    let path = try series.folder.write("next.car", alice.car())
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T04:05:06Z", hostSystem: "Linux", milliseconds: { 0 })
    _ = try RepositoryPacker(options).pack(InputFile(path), folders: [], into: storage)
  }

  /// The CARs of the snapshots that are listed, each of which is given back bit for bit.
  private func listed(_ storage: MemoryStorage) throws -> [[UInt8]] {
    let history = try SnapshotHistory(of: ArchiveReader(storage.map()))
    #expect(history.disruptions.isEmpty)
    return try history.entries.map { entry in
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: history.reader))
      #expect(restored.isExact)
      return restored.withBytes { $0.array }
    }
  }

  private var cars: [[UInt8]] { series.heads.compactMap { series.cars[$0] } }

  @Test(arguments: [0, 28, 40, 192])
  func `is left alone by a writer where data lies behind them, and made whole by repair`(
    left: Int
  ) throws {
    // The last footer holds no more either, and of the two before it this many bytes are left.
    for first in [2, 3] {
      var damaged = bytes
      for footer in footers[first...] {
        for place in footer.range.dropFirst(footer == footers[4] ? 0 : left) { damaged[place] = 0 }
      }
      let storage = MemoryStorage(damaged)
      if left < 192 {
        #expect(throws: ArchiveError.self) { try packNext(into: storage) }
        #expect(storage.bytes == damaged)
      }
      #expect(try ArchiveRepair.repair(storage).damage == nil)
      #expect(try listed(storage) == cars)
      try packNext(into: storage)
      #expect(try listed(storage).count == 6)
    }
  }

  /// The archive compacted, which has one footer, without that.
  private func compactedWithoutFooter() throws -> [UInt8] {
    _ = try ArchiveCopier().compact(series.path)
    let compacted = try series.bytes
    let footer = try ArchiveReader(MappedFile(copying: compacted)).generation.footerOffset
    return Array(compacted[..<Int(footer)])
  }

  @Test func `has all snapshots but a lost one after a repair that was interrupted`() throws {
    var damaged = try compactedWithoutFooter()
    damaged[try place(ofManifest: 1, in: damaged) + 40] ^= 0xff
    let left = cars.enumerated().filter { $0.offset != 1 }.map(\.element)
    for number in stride(from: 1, to: 1000, by: 3) {
      let storage = MemoryStorage(damaged, .init([StorageFault(number, .forEver)]))
      let isDone = (try? ArchiveRepair.repair(storage)) != nil
      let again = MemoryStorage(storage.bytes)
      _ = try ArchiveRepair.repair(again)
      #expect(try listed(again) == left, "operation \(number)")
      if isDone { return }
    }
    Issue.record("it is never repaired")
  }

  /// Where the frame of the snapshot with this number in the order of the file begins.
  private func place(ofManifest number: Int, in bytes: [UInt8]) throws -> Int {
    let survey = try Survey(MappedFile(copying: bytes))
    return Int(survey.frames[survey.manifests[number].frame].offset)
  }

  @Test func `keeps the order of snapshots where a repair has begun to count anew`() throws {
    var damaged = bytes
    for footer in footers { for place in footer.range { damaged[place] = 0 } }
    let storage = MemoryStorage(damaged)
    #expect(try ArchiveRepair.repair(storage).damage == nil)
    try packNext(into: storage)
    let all = try listed(storage)
    #expect(all.count == 6)
    // Everything after this place has moved then, and every manifest before the last is known by
    // old footers, new ones, or none.
    for number in 0..<4 {
      var moved = storage.bytes
      let start = try place(ofManifest: number, in: moved)
      moved.removeSubrange(start..<start + 100)
      let history = try SnapshotHistory(of: ArchiveReader(MappedFile(copying: moved)))
      #expect(history.disruptions.isEmpty, "without manifest \(number)")
      let report = try SnapshotVerifier().verify(history.reader, .full)
      #expect(report.verdict == .damaged, "without manifest \(number)")
    }
  }
}
