import ATProtocol
import Archive
import Copying
import Files
import IPLD
internal import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `Forgetting snapshots` {
  /// A series of days, with one post more each.
  private func days(_ count: Int, did: String? = nil, posts: Int = 40) throws -> Series {
    var series = try Series()
    try addDays(0..<count, to: &series, did: did, posts: posts)
    return series
  }

  private func addDays(
    _ days: Range<Int>, to series: inout Series, did: String? = nil, posts: Int = 40
  ) throws {
    var repository = try TestRepository(posts: posts)
    if let did { repository.did = did }
    for day in days {
      repository.rev = Self.rev(day)
      try repository.add("app.bsky.feed.like/3l\(day)", ["day": .integer(Int128(day))])
      try series.pack(repository.car()) { options in
        options.provenance.createdAt = "2026-01-\(day < 9 ? "0" : "")\(day + 1)T12:00:00Z"
      }
    }
  }

  private static func rev(_ day: Int) -> String {
    TID(integer: (1_767_225_600_000_000 + UInt64(day)) << 10).text
  }

  private func prune(
    _ path: FilePath, _ policy: RetentionPolicy, account: String? = nil
  ) throws -> RetentionPolicy.Report {
    try policy.prune(FileStorage.open(path), name: "a") { history in
      try account.map { text throws in try history.account(text) }
    }
  }

  @Test func `appends a generation in which they are not reached any more`() throws {
    let series = try days(10)
    let before = try series.bytes
    let cars = series.heads.map { series.cars[$0] }
    let report = try prune(series.path, RetentionPolicy(last: 2, weekly: 2))
    // The 10th, the 9th, and the last day of the week before: Sunday the 4th.
    #expect(
      report.plan.verdicts.map { !$0.reasons.isEmpty } == (0..<10).map { [3, 8, 9].contains($0) })
    let bytes = try series.bytes
    #expect(bytes.starts(with: before) && UInt64(bytes.count - before.count) == report.bytesAdded)
    #expect(report.bytesAdded < 5000)
    let reader = try series.reader
    let history = try SnapshotHistory(of: reader)
    #expect(history.breaks == [])
    #expect(
      history.entries.map(\.createdAt).map { $0.prefix(10) } == [
        "2026-01-04", "2026-01-09", "2026-01-10",
      ])
    #expect(try reader.cars() == [3, 8, 9].map { cars[$0] })
    #expect(try reader.verify().findings == [])
    #expect(try reader.hasManifestsAlone())
    #expect(try SnapshotVerifier().verify(reader, .full).verdict == .intact)
    #expect(try ZstdProgram.accepts(series.path.string))
    #expect(try IndependentReader.run(["verify", series.path.string]).status == 0)
  }

  @Test func `forgets the only complete one if it is named alone, and says so`() throws {
    var series = try SeriesArchive()
    for (day, isComplete) in [true, false, false].enumerated() {
      var repository = try TestRepository(posts: 5)
      repository.rev = Self.rev(day)
      let lost = try #require(repository.blocks().last?.cid)
      if !isComplete { repository.omitted = [lost] }
      try series.add(repository.car(), at: "2026-01-0\(day + 1)T12:00:00Z")
    }
    let history = try SnapshotHistory(of: series.reader())
    #expect(history.entries.map(\.isComplete) == [true, false, false])
    let plan = try RetentionPolicy.Plan(history, RetentionPolicy(last: 1))
    #expect(plan.verdicts.map { !$0.reasons.isEmpty } == [true, false, true])
    #expect(plan.lastComplete == [])
    let named = try RetentionPolicy.Plan(history, .everything, forgetting: [1])
    #expect(named.lastComplete.map(\.number) == [1])
  }

  @Test func `changes no manifest before the first that is forgotten`() throws {
    let series = try days(6)
    let manifests = try SnapshotHistory(of: series.reader).entries.map(\.cid)
    // The years keep the last alone; the times of the others are not valid.
    let report = try prune(series.path, RetentionPolicy(last: 6))
    #expect(report.plan.forgottenCount == 0 && report.bytesAdded == 0)
    var other = try days(3)
    let kept = try SnapshotHistory(of: other.reader).entries.map(\.cid)
    try addDays(3..<6, to: &other, did: "did:plc:z72i7hdynmk6r22z27h6tvur")
    _ = try prune(other.path, RetentionPolicy(last: 1), account: "did:plc:z72i7hdynmk6r22z27h6tvur")
    let after = try SnapshotHistory(of: other.reader).entries.map(\.cid)
    #expect(after.count == 4 && Array(after.prefix(3)) == kept)
    #expect(try SnapshotHistory(of: series.reader).entries.map(\.cid) == manifests)
  }

  @Test func `of nothing writes nothing`() throws {
    let series = try days(4)
    let before = try series.bytes
    for policy in [
      RetentionPolicy(last: 4), RetentionPolicy(daily: 9), RetentionPolicy(last: 9, yearly: 1),
    ] {
      let report = try prune(series.path, policy)
      #expect(report.plan.forgottenCount == 0 && report.bytesAdded == 0)
    }
    #expect(try series.bytes == before)
  }

  @Test func `leaves other accounts alone, and each its newest`() throws {
    var series = try days(4)
    let bob = "did:plc:z72i7hdynmk6r22z27h6tvur"
    try addDays(0..<4, to: &series, did: bob)
    #expect(throws: SelectionError.self) {
      _ = try prune(series.path, RetentionPolicy(last: 1), account: "nobody.test")
    }
    _ = try prune(series.path, RetentionPolicy(last: 2), account: bob)
    var entries = try SnapshotHistory(of: series.reader).entries
    #expect(entries.count { $0.did.text == bob } == 2 && entries.count == 6)
    _ = try prune(series.path, RetentionPolicy(yearly: 1))
    entries = try SnapshotHistory(of: series.reader).entries
    #expect(entries.count == 2 && Set(entries.map(\.did)).count == 2)
    #expect(entries.allSatisfy { $0.createdAt.hasPrefix("2026-01-04") })
    _ = try series.reader.cars()
  }

  @Test func `is followed by packing as if nothing had been`() throws {
    var series = try days(5)
    _ = try prune(series.path, RetentionPolicy(last: 1))
    let before = try series.bytes
    // The same again is nothing new.
    var repository = try TestRepository(posts: 40)
    repository.rev = Self.rev(4)
    for day in 0..<5 {
      try repository.add("app.bsky.feed.like/3l\(day)", ["day": .integer(Int128(day))])
    }
    #expect(try series.pack(repository.car()).isUnchanged)
    #expect(try series.bytes == before)
    try repository.add("a.b.c/new", ["text": .string("new")])
    repository.rev = Self.rev(5)
    #expect(try !series.pack(repository.car()).isUnchanged)
    #expect(try series.reader.cars().count == 2)
  }

  @Test func `keeps orders that were relative to a forgotten one`() throws {
    var random = SeededGenerator()
    print("Forgetting snapshots: \(random)")
    var series = try Series()
    var repository = try TestRepository(posts: 900)
    var car = try repository.car()
    var cars: [[UInt8]] = []
    // A server that once changes the order, and gives what is new after the rest: long orders, each
    // relative to the one before.
    for day in 0..<40 {
      cars.append(car)
      try series.pack(car) { $0.provenance.createdAt = "2026-01-01T00:00:\(10 + day)Z" }
      try repository.add("app.bsky.feed.like/3l\(day)", ["day": .integer(Int128(day))])
      if day == 0 { car = try shuffled(car, using: &random) }
      car = try appending(repository.car(), to: car)
    }
    let reader = try series.reader
    let relative = try SnapshotHistory(of: reader).entries.count {
      try ArchivedSnapshot($0.cid, in: reader).snapshot.car.base != nil
    }
    #expect(relative > 30)
    var alive = Array(0..<40)
    // Every third, then half of them, then nearly all, each time on top of the time before.
    for (round, step) in [3, 2, 8].enumerated() {
      let archive = try SourceArchive(series.reader, name: "a")
      var chosen = alive.indices.filter { $0 % step != 1 }
      if chosen.last != alive.count - 1 { chosen.append(alive.count - 1) }
      try forget(archive, keeping: Set(chosen), in: series.path)
      alive = chosen.map { alive[$0] }
      let now = try series.reader
      #expect(try now.cars() == alive.map { cars[$0] }, "round \(round)")
      // What is relative is so to one that is kept.
      let history = try SnapshotHistory(of: now)
      let manifests = Set(history.entries.map(\.cid))
      for entry in history.entries {
        let base = try ArchivedSnapshot(entry.cid, in: now).snapshot.car.base
        #expect(base.map { manifests.contains($0) } ?? true)
      }
    }
    #expect(try series.reader.verify().findings == [])
    #expect(try IndependentReader.run(["verify", series.path.string]).status == 0)
  }

  /// Forgets all but certain ones.
  private func forget(_ archive: SourceArchive, keeping kept: Set<Int>, in path: FilePath) throws {
    var writer = try ArchiveWriter.open(
      try FileStorage.open(path), carHeader: try archive.reader.carHeader)
    let entries = archive.history.entries.indices.filter(kept.contains)
    let links = entries.map { ChainLink(archive.history.entries[$0].cid) }
    _ = try SnapshotHistory.nameFound(links, in: archive, with: &writer)
  }

  /// A CAR with its sections in the order of an earlier one, and new ones at the end.
  private func appending(_ car: [UInt8], to earlier: [UInt8]) throws -> [UInt8] {
    func sections(_ car: [UInt8]) throws -> [(cid: CID, bytes: ArraySlice<UInt8>)] {
      let header = try CARHeader(car.span)
      var cursor = CARCursor(header: header, payload: 0..<car.count)
      var start = header.length
      var found: [(CID, ArraySlice<UInt8>)] = []
      while let (section, cid) = try cursor.next(in: car.span) {
        found.append((cid, car[start..<section.end]))
        start = section.end
      }
      return found
    }
    let (old, new) = (try sections(earlier), try sections(car))
    let (known, wanted) = (Set(old.map(\.cid)), Set(new.map(\.cid)))
    let order = old.filter { wanted.contains($0.cid) } + new.filter { !known.contains($0.cid) }
    return Array(car[..<(try CARHeader(car.span).length)]) + order.flatMap(\.bytes)
  }

  @Test func `refuses an archive that is damaged, and writes nothing`() throws {
    var archive = try SeriesArchive()
    for day in 0..<5 {
      var repository = try TestRepository(posts: 20)
      try repository.add("a.b.c/\(day)", ["day": .integer(Int128(day))])
      try archive.add(repository.car(), at: "2026-01-0\(day + 1)T00:00:00Z")
    }
    let damaged = [
      try archive.damaging(manifest: 0), try archive.damaging(manifest: 3),
      try archive.withoutFooters(),
    ]
    for bytes in damaged {
      let path = FilePath(try archive.folder.write("damaged.car.zst", bytes))
      #expect {
        _ = try prune(path, RetentionPolicy(last: 1))
      } throws: { error in
        guard case .damagedArchive("a", _)? = error as? BackupError else { return false }
        return true
      }
      #expect(try archive.folder.read("damaged.car.zst") == bytes)
    }
  }

  @Test func `refuses an archive with a damaged frame, wherever it is, and changes nothing`() throws
  {
    let series = try days(5)
    let bytes = try series.bytes
    let reader = try series.reader
    let frames = try reader.withFile { file in
      let index = try ArchiveIndex(reader.generation, in: file)
      return (0..<reader.generation.sectionCount).compactMap { ordinal in
        index.row(of: ordinal, in: file)?.entry
      }
    }
    for place in Set(frames.map { Int($0.offset) + Int($0.storedLength) / 2 }).sorted() {
      var damaged = bytes
      damaged[place] ^= 0x10
      // With and without what an interrupted write has left.
      for tail in [[], [UInt8](repeating: 0, count: 1000)] {
        let path = FilePath(try series.folder.write("damaged.car.zst", damaged + tail))
        #expect("byte \(place)") {
          _ = try prune(path, RetentionPolicy(last: 1))
        } throws: { error in
          guard case .damagedArchive("a", _)? = error as? BackupError else { return false }
          return true
        }
        #expect(try series.folder.read("damaged.car.zst") == damaged + tail, "byte \(place)")
      }
    }
  }

  @Test func `that is interrupted is as if it had not been`() throws {
    let series = try days(6)
    let before = try series.bytes
    let report = try prune(series.path, RetentionPolicy(last: 2))
    let after = try series.bytes
    #expect(report.plan.forgottenCount == 4)
    var lengths = Set([before.count + 1, after.count - 1])
    for length in stride(from: before.count, to: after.count, by: 97) { lengths.insert(length) }
    for length in lengths.sorted() {
      let path = FilePath(try series.folder.write("cut.car.zst", Array(after.prefix(length))))
      let history = try SnapshotHistory(of: ArchiveReader(path: path))
      #expect(history.entries.count == 6 && history.breaks == [], "\(length) bytes")
      // Again it comes to its end.
      _ = try prune(path, RetentionPolicy(last: 2))
      let reader = try ArchiveReader(path: path)
      #expect(try SnapshotHistory(of: reader).entries.count == 2, "\(length) bytes")
      #expect(try reader.verify().findings == [], "\(length) bytes")
    }
  }

  @Test func `leaves the old snapshots or the new, whatever fails`() throws {
    let series = try days(6)
    let before = try series.bytes
    _ = try prune(series.path, RetentionPolicy(last: 2))
    let after = try series.bytes
    var isReached = true
    var place = 0
    while isReached {
      let path = FilePath(try series.folder.write("faulty.car.zst", before))
      do {
        let storage = FaultyStorage(try FileStorage.open(path), .failure, at: place)
        do {
          _ = try RetentionPolicy(last: 2).prune(storage, name: "a")
          isReached = storage.isReached
          #expect(!isReached, "\(place)")
        } catch {}
      }
      let bytes = try series.folder.read("faulty.car.zst")
      #expect(bytes.starts(with: before), "\(place)")
      let reader = try ArchiveReader(path: path)
      let count = try SnapshotHistory(of: reader).entries.count
      #expect(count == 6 || bytes == after, "\(place)")
      // The next time it comes to its end.
      _ = try prune(path, RetentionPolicy(last: 2))
      #expect(try SnapshotHistory(of: ArchiveReader(path: path)).entries.count == 2, "\(place)")
      place += 1
    }
    #expect(place > 8)
    print("Forgetting snapshots: \(place - 1) faults")
  }

  @Test func `keeps fields that nobody here knows`() throws {
    var archive = try SeriesArchive()
    for day in 0..<3 {
      var repository = try TestRepository(posts: 5 + day)
      repository.rev = Self.rev(day)
      try archive.add(repository.car(), at: "2026-01-0\(day + 1)T00:00:00Z")
    }
    let path = try archive.withFurtherFields(at: "2026-01-04T00:00:00Z")
    _ = try prune(path, RetentionPolicy(last: 1))
    let reader = try ArchiveReader(path: path)
    let head = try #require(reader.generation.head?.cid)
    let body = try #require(try reader.body(of: head))
    let map = try DAGCBORDecoder.decode(body.span)
    #expect(map["prev"] == .null)
    #expect(map["future"] == SeriesArchive.future)
    #expect(map["car"]?["more"] == .string("about the CAR"))
    #expect(try SnapshotHistory(of: reader).entries.map(\.createdAt) == ["2026-01-04T00:00:00Z"])
  }
}
