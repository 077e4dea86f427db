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

/// An archive of five snapshots, whose third manifest was lost and taken from a copy, so that it
/// lies after all others; and then a second thing happens to it.
@Suite struct `A mended archive` {
  private let series: Series
  private let copy: [UInt8]
  private let mended: [UInt8]

  init() throws {
    var random = SeededGenerator(printing: 0x5ec0_2001)
    var series = try Series()
    var alice = try TestRepository(posts: 30)
    for (number, rev) in ["2x", "3x", "4x", "5x", "6x"].enumerated() {
      alice.rev = "3lscuqc52or\(rev)"
      try alice.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      let blob = random.bytes(400)
      try alice.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
      try series.pack(alice.car(), blobs: ["\(number)": blob])
    }
    copy = try series.bytes
    let reader = try series.reader
    let ordinal = try #require(try reader.ordinal(of: series.heads[2]))
    let place = try reader.withFile { reader.index.row(of: ordinal, in: $0)?.entry.offset }
    var damaged = copy
    damaged[Int(try #require(place)) + 40] ^= 0xff
    let storage = MemoryStorage(damaged)
    let report = try ArchiveRepair.repair(
      storage, from: [ArchiveReader(MappedFile(copying: copy))])
    #expect(report.archive.sectionsHealed == 1 && report.damage == nil)
    mended = storage.bytes
    self.series = series
    try Torture.keep(copy, "copy.car.zst")
    try check(MemoryStorage(mended), "mended")
  }

  /// Every snapshot is there, bit for bit, in the order in which they were made, and nothing is
  /// called damaged or no further than it was.
  private func check(
    _ storage: MemoryStorage, mayLackSections: Bool = false, _ comment: Comment,
    at location: SourceLocation = #_sourceLocation
  ) throws {
    let reader = try ArchiveReader(storage.map())
    let history = try SnapshotHistory(of: reader)
    #expect(history.disruptions.isEmpty, comment, sourceLocation: location)
    let cars = series.heads.compactMap { series.cars[$0] }
    let digests = cars.map { SHA256.digest(of: $0.span) }
    let found = history.entries.compactMap(\.carSHA256)
    #expect(found.starts(with: digests.prefix(5)), comment, sourceLocation: location)
    for (entry, car) in zip(history.entries, cars) {
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: history.reader))
      let isSame = restored.withBytes { $0.array } == car
      #expect(isSame, comment, sourceLocation: location)
    }
    let report = try SnapshotVerifier().verify(reader, .full)
    let isSound = report.verdict != .damaged || mayLackSections && report.damage.isEmpty
    #expect(isSound, "\(comment): \(report.firstDamage ?? "")", sourceLocation: location)
  }

  @Test func `whose newest footer is damaged keeps the order of its snapshots`() throws {
    let footer = Int(try ArchiveReader(MappedFile(copying: mended)).generation.footerOffset)
    for place in footer..<mended.count {
      var damaged = mended
      damaged[place] ^= 0x10
      let storage = MemoryStorage(damaged)
      let report = try ArchiveRepair.repair(storage)
      #expect(report.damage == nil, "byte \(place)")
      try check(storage, "byte \(place)")
      #expect(storage.bytes == mended, "byte \(place)")
    }
    for length in [1, 3, 8, 100] {
      let storage = MemoryStorage(mended.dropLast(length).array)
      _ = try ArchiveRepair.repair(storage)
      try check(storage, "\(length) bytes cut off")
    }
    // All footers are gone.
    var damaged = mended
    for seen in try Survey(MappedFile(copying: mended)).footers {
      for index in seen.frame.range { damaged[index] = 0 }
    }
    let storage = MemoryStorage(damaged)
    try Torture.keep(damaged, "footless.car.zst")
    _ = try ArchiveRepair.repair(storage)
    try Torture.keep(storage.bytes, "footless-repaired.car.zst")
    try check(storage, "no footer is left")
    let history = try SnapshotHistory(of: ArchiveReader(storage.map()))
    #expect(history.entries.last?.isVouched == true)
  }

  @Test func `takes over from a copy what it has lost without a trace`() throws {
    let source = try ArchiveReader(MappedFile(copying: copy))
    let footers = try Survey(MappedFile(copying: copy)).footers.map(\.frame)
    // All of one generation or two; the newest two.
    for (first, last) in [(0, 1), (1, 2), (1, 3), (2, 3)] {
      var damaged = copy
      damaged.removeSubrange(footers[first].end..<footers[last].end)
      let storage = MemoryStorage(damaged)
      let report = try ArchiveRepair.repair(storage, from: [source])
      let comment: Comment = "generations behind \(first + 1), up to \(last + 1)"
      // The copy tells which sections the lost numbers were, or has the snapshots.
      #expect(report.takenCount >= last - first || report.archive.sectionsHealed > 0, comment)
      try check(storage, mayLackSections: true, comment)
      let repaired = storage.bytes
      #expect(try ArchiveRepair.repair(storage, from: [source]).takenCount == 0, comment)
      #expect(storage.bytes == repaired, comment)
    }
    let storage = MemoryStorage(Array(copy[..<(footers[2].end + 100)]))
    #expect(try ArchiveRepair.repair(storage, from: [source]).takenCount == 2)
    try check(storage, "the newest two")
  }

  @Test func `in which bytes that count no more are changed is damaged`() throws {
    let landmarks = try Survey(MappedFile(copying: mended)).landmarks
    let voids = landmarks.compactMap {
      if case .void(let range) = $0.landmark { range } else { nil }
    }
    let void = try #require(voids.first)
    for place in [0, 3, 5, 8, void.count / 2, void.count - 1] {
      var damaged = mended
      damaged[void.lowerBound + place] ^= 1
      let reader = try ArchiveReader(MappedFile(copying: damaged))
      #expect(try SnapshotVerifier().verify(reader, .full).verdict == .damaged, "byte \(place)")
      let storage = MemoryStorage(damaged)
      #expect(try ArchiveRepair.repair(storage).damage == nil, "byte \(place)")
      try check(storage, "byte \(place) of a void, repaired")
    }
  }

  @Test func `keeps the order of its snapshots when the power goes in the next write`() throws {
    var random = SeededGenerator(printing: 0x5ec0_2002)
    var next = try TestRepository(posts: 30)
    next.rev = "3lscuqc52or7x"
    let path = try series.folder.write("next.car", next.car())
    for number in 1...30 {
      let storage = MemoryStorage(
        mended, .init([StorageFault(number, .forEver)], floor: UInt64(mended.count)))
      var options = RepositoryPacker.Options(
        tool: "tests", createdAt: "2026-01-02T03:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
      options.startsOver = false
      let isPacked =
        (try? RepositoryPacker(options).pack(InputFile(path), folders: [], into: storage)) != nil
      for loss in [.ofNothing, .ofEverything] + (0..<6).map({ _ in PowerLoss(using: &random) }) {
        let comment: Comment = "operation \(number), \(loss)"
        try check(storage.surviving(loss), comment)
        let repaired = storage.surviving(loss)
        if try ArchiveRepair.repair(repaired).damage != nil {
          try Torture.keep(storage.surviving(loss).bytes, "next-\(number).car.zst")
        }
        try check(repaired, "\(comment), repaired")
      }
      if isPacked { return }
    }
    Issue.record("it is never packed")
  }

  @Test func `is mended whenever the power goes in mending it`() throws {
    var random = SeededGenerator(printing: 0x5ec0_2003)
    let source = try ArchiveReader(MappedFile(copying: copy))
    let survey = try Survey(MappedFile(copying: copy))
    // A manifest, a pack, the newest manifest, all of a generation.
    for frames in [[5], [0], [3, 4], [survey.frames.count - 1], Array(survey.frames.indices)] {
      var damaged = copy
      for frame in frames { damaged[Int(survey.frames[frame].end) - 9] ^= 0x10 }
      // Every fifth operation: each is mended many times.
      for number in stride(from: 1 + frames.count % 5, to: 1000, by: 5) {
        let storage = MemoryStorage(damaged, .init([StorageFault(number, .forEver)]))
        let isDone = (try? ArchiveRepair.repair(storage, from: [source])) != nil
        for loss in [.ofNothing, .ofEverything] + (0..<3).map({ _ in PowerLoss(using: &random) }) {
          let comment: Comment = "frames \(frames), operation \(number), \(loss)"
          let left = storage.surviving(loss)
          let before = left.bytes
          let report: ArchiveRepair.Outcome
          do {
            report = try ArchiveRepair.repair(left, from: [source])
          } catch {
            try Torture.keep(
              before, "left-\(frames.count)-\(frames[0])-\(number)-\("\(loss)".suffix(3)).car.zst")
            throw error
          }
          if report.damage != nil {
            try Torture.keep(
              before, "left-\(frames.count)-\(frames[0])-\(number)-\("\(loss)".suffix(3)).car.zst")
          }
          #expect(report.damage == nil, comment)
          try check(left, comment)
        }
        if isDone { break }
      }
    }
  }
}

extension ArraySlice<UInt8> {
  fileprivate var array: [UInt8] { Array(self) }
}
