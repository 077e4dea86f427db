import ATProtocol
import Archive
import Copying
import Files
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `Merging archives` {
  private static let bob = "did:plc:z72i7hdynmk6r22z27h6tvur"

  /// Merges archives into a file of the first one's folder.
  private func merge(_ series: [Series]) throws -> (ArchiveCopier.MergeReport, ArchiveReader) {
    try merge(series.map(\.path), in: series[0].folder)
  }

  private func merge(
    _ paths: [FilePath], in folder: TemporaryFolder
  ) throws -> (ArchiveCopier.MergeReport, ArchiveReader) {
    let path = FilePath(folder.file("merged.car.zst"))
    let archives = try paths.map { path in
      try SourceArchive(ArchiveReader(path: path), name: path.string)
    }
    let report = try ArchiveCopier().merge(archives, to: AtomicFile(path, replacing: true))
    let reader = try ArchiveReader(path: path)
    #expect(try reader.verify().findings == [])
    #expect(try isAccepted(path.string))
    return (report, reader)
  }

  @Test func `puts the snapshots in the order of time, and each section once`() throws {
    var (first, second) = (try Series(), try Series())
    var repository = try TestRepository(posts: 300)
    var cars: [[UInt8]] = []
    for day in 1...6 {
      try repository.add("a.b.c/\(day)", ["day": .integer(Int128(day))])
      cars.append(try repository.car())
      let pack: (inout RepositoryPacker.Options) -> Void = {
        $0.provenance.createdAt = "2026-01-0\(day)T00:00:00Z"
      }
      if day % 2 == 0 {
        try first.pack(repository.car(), change: pack)
      } else {
        try second.pack(repository.car(), change: pack)
      }
    }
    let before = (try first.bytes, try second.bytes)
    let (report, reader) = try merge([first, second])
    #expect(report.snapshotCount == 6 && report.sharedCount == 0 && report.accountCount == 1)
    #expect(try reader.cars() == cars)
    #expect(try reader.contents() == reader.needs(cars, held: []))
    let header = try reader.carHeader
    #expect(cars[5].starts(with: header), "the newest is what a plain CAR reader finds")
    let sum = try first.bytes.count + second.bytes.count
    #expect(report.generation.committedLength < UInt64(sum) * 2 / 3)
    #expect(try (first.bytes, second.bytes) == before)
    // The other way round it is the same.
    #expect(try merge([second, first]).1.cars() == cars)
  }

  @Test func `takes what one copy lost from another, in whatever order they are given`() throws {
    var series = try Series()
    let car = try TestRepository(posts: 300).car()
    try series.pack(car)
    var damaged = try series.bytes
    damaged[2000] ^= 1
    let copy = FilePath(try series.folder.write("damaged.car.zst", damaged))
    for paths in [[series.path, copy], [copy, series.path]] {
      let (report, reader) = try merge(paths, in: series.folder)
      #expect(report.snapshotCount == 1 && report.sharedCount == 1)
      #expect(try reader.cars() == [car])
    }
    #expect(throws: BackupError.self) { try merge([copy, copy], in: series.folder) }
  }

  @Test func `puts an older revision before a newer one, however late it was packed`() throws {
    var (first, second) = (try Series(), try Series())
    var repository = try TestRepository(posts: 5)
    let older = try repository.car()
    try repository.advance()
    try repository.add("a.b.c/1", ["day": .integer(1)])
    let newer = try repository.car()
    try first.pack(newer) { $0.provenance.createdAt = "2026-01-01T00:00:00Z" }
    try second.pack(older) { $0.provenance.createdAt = "2026-01-02T00:00:00Z" }
    let (_, reader) = try merge([first, second])
    #expect(try reader.cars() == [older, newer])
    #expect(try SnapshotHistory(of: reader).disruptions.isEmpty)
    // What is a rollback in one of them stays one.
    try first.pack(older) { $0.provenance.createdAt = "2026-01-03T00:00:00Z" }
    let rolledBack = try merge([first, second]).1
    #expect(try rolledBack.cars() == [older, newer, older])
    #expect(try SnapshotHistory(of: rolledBack).disruptions.map(\.kind) == [.rollback])
  }

  @Test func `keeps once what both have, whatever has become of it in each`() throws {
    var first = try Series()
    var repository = try TestRepository(posts: 100)
    for round in 0..<5 {
      try repository.advance()
      try repository.add("a.b.c/\(round)", ["round": .integer(Int128(round))])
      try first.pack(repository.car())
    }
    let cars = try first.reader.cars()
    // A copy, of which some are forgotten, that is compacted, and that another account comes to.
    var second = try Series()
    try second.folder.write("a.car.zst", first.bytes)
    _ = try RetentionPolicy(last: 3).prune(FileStorage.open(second.path), name: "b")
    _ = try ArchiveCopier().compact(second.path)
    var other = try TestRepository(posts: 20)
    other.did = Self.bob
    try second.pack(other.car()) { $0.provenance.createdAt = "2025-01-01T00:00:00Z" }
    let (report, reader) = try merge([first, second])
    #expect(report.snapshotCount == 6 && report.sharedCount == 3 && report.accountCount == 2)
    #expect(try reader.cars() == [other.car()] + cars)
    // With itself an archive is what it was.
    let (again, same) = try merge([first, first])
    #expect(again.snapshotCount == 5 && again.sharedCount == 5)
    #expect(try same.cars() == cars)
  }

  @Test func `keeps two that differ in anything but their place`() throws {
    var (first, second) = (try Series(), try Series())
    let car = try TestRepository(posts: 10).car()
    try first.pack(car) { $0.facts.pds = "https://one.test" }
    try second.pack(car) { $0.facts.pds = "https://two.test" }
    let (report, reader) = try merge([first, second])
    #expect(report.snapshotCount == 2 && report.sharedCount == 0)
    let entries = try SnapshotHistory(of: reader).entries
    #expect(
      try entries.map { try ArchivedSnapshot($0.cid, in: reader).snapshot.pds } == [
        "https://one.test", "https://two.test",
      ])
  }

  @Test func `takes a blob from whichever archive holds it`() throws {
    let blobs = [
      [UInt8](repeating: 1, count: 200_000), Array("small".utf8), [UInt8](repeating: 3, count: 9),
    ]
    var (first, second) = (try Series(), try Series())
    var alice = try TestRepository(posts: 10)
    try alice.add("a.b.c/1", blob: .blob(blobs[0]))
    try alice.add("a.b.c/2", blob: .blob(blobs[1]))
    try alice.add("a.b.c/3", blob: .blob([0]))
    var bob = try TestRepository(posts: 10)
    bob.did = Self.bob
    try bob.add("a.b.c/1", blob: .blob(blobs[0]))
    try bob.add("a.b.c/2", blob: .blob(blobs[2]))
    try first.pack(alice.car(), blobs: ["2": blobs[1]]) {
      $0.provenance.createdAt = "2026-01-03T00:00:00Z"
    }
    try second.pack(bob.car(), blobs: ["1": blobs[0], "2": blobs[2]])
    let (_, reader) = try merge([first, second])
    let held = Set(blobs.map { CID.blob($0) })
    #expect(try reader.contents().isSuperset(of: held))
    // Bob's was made the day before.
    #expect(
      try reader.contents() == reader.needs([try bob.car(), alice.car()], held: held))
    for blob in blobs { #expect(try reader.body(of: .blob(blob)) == blob) }
    // The newest is alice's, of which more is held than when it was packed.
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.damage == [] && report.missingBlobs.map(\.cid) == [.blob([0])])
  }

  @Test func `leaves those without a time behind those that they followed`() throws {
    var (first, second) = (try SeriesArchive(), try SeriesArchive())
    func car(_ number: Int) throws -> [UInt8] {
      var repository = TestRepository()
      try repository.add("a.b.c/x", ["number": .integer(Int128(number))])
      return try repository.car()
    }
    for (number, time) in ["soon", "2026-01-03T00:00:00Z", "then", "2026-01-01T00:00:00Z"]
      .enumerated()
    {
      try first.add(car(number), at: time)
    }
    for (number, time) in ["2026-01-03T00:00:00+00:00", "2026-01-02T00:00:00Z"].enumerated() {
      try second.add(car(10 + number), at: time)
    }
    let (_, reader) = try merge([first.path, second.path], in: first.folder)
    #expect(
      try SnapshotHistory(of: reader).entries.map(\.createdAt) == [
        "soon", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "then",
        "2026-01-03T00:00:00+00:00",
      ])
  }

  @Test func `has the optional features of all`() throws {
    var series = [try Series(), try Series()]
    for index in series.indices {
      try series[index].pack(TestRepository(posts: index + 1).car())
      var options = ArchiveOptions()
      options.optionalFeatures = 1 << UInt64(20 + index)
      var writer = try ArchiveWriter.open(
        FileStorage.open(series[index].path), carHeader: series[index].reader.carHeader,
        options: options)
      try writer.append(.blob([1]), [1].span)
      try writer.commit(manifest: nil)
    }
    #expect(try merge(series).1.generation.features.optional == 3 << 20)
  }

  @Test func `refuses a damaged archive, and leaves nothing behind`() throws {
    var (first, second) = (try Series(), try Series())
    try first.pack(TestRepository(posts: 200).car())
    try second.pack(TestRepository(posts: 300).car())
    var damaged = try second.bytes
    damaged[2000] ^= 1
    try second.folder.write("a.car.zst", damaged)
    #expect {
      _ = try merge([first, second])
    } throws: { error in
      guard case .damagedArchive(let name, _)? = error as? BackupError else { return false }
      return name == second.path.string
    }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: first.folder.path).sorted() == [
        "a.car.zst", "repo.car",
      ])
  }

  @Test func `leaves nothing behind, whatever fails`() throws {
    var (first, second) = (try Series(), try Series())
    try first.pack(TestRepository(posts: 40).car())
    var other = try TestRepository(posts: 50)
    other.did = Self.bob
    try second.pack(other.car())
    let archives = try [first, second].map { series in
      try SourceArchive(series.reader, name: series.path.string)
    }
    let path = FilePath(first.folder.file("merged.car.zst"))
    for fault in [FaultyStorage.Fault.failure, .flip] {
      var place = 0
      while !AtomicFile.isTaken(path) {
        let merger = ArchiveCopier(observer: { _ in }) { file, _ in
          FaultyStorage(try file.storage(), fault, at: place)
        }
        do {
          _ = try merger.merge(archives, to: AtomicFile(path, replacing: false))
        } catch {
          let left = try FileManager.default.contentsOfDirectory(atPath: first.folder.path)
          #expect(left.sorted() == ["a.car.zst", "repo.car"], "\(fault) \(place)")
        }
        place += 1
      }
      #expect(place > 5)
      #expect(try ArchiveReader(path: path).cars().count == 2)
      try FileManager.default.removeItem(atPath: path.string)
    }
  }

  @Test(.enabled(if: Corpus.isPresent, Comment(rawValue: Corpus.absence)))
  func `makes one archive of all real series, and gives every CAR back`() throws {
    var all: [Series] = []
    for series in Corpus.files(under: "repos", suffix: "series.json") {
      let parent = (series as NSString).deletingLastPathComponent
      var packed = try Series()
      for car in Corpus.files(under: parent, suffix: ".car") { try packed.pack(Corpus.bytes(car)) }
      all.append(packed)
    }
    try #require(!all.isEmpty)
    let (report, reader) = try merge(all)
    #expect(report.snapshotCount == all.reduce(0) { $0 + $1.heads.count })
    let expected = all.flatMap { series in series.heads.compactMap { series.cars[$0] } }
    #expect(try Set(reader.cars()) == Set(expected))
    #expect(try reader.contents() == reader.needs(expected, held: []))
  }
}
