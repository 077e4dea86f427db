import ATProtocol
import Archive
import ArchiveTestSupport
import Copying
import Files
import Foundation
import IPLD
internal import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `Compacting an archive` {
  private static let blobs = (0..<6).map { [UInt8](repeating: UInt8($0), count: 50_000 * ($0 + 1)) }
  private static let extra = Array("an extra that no record refers to".utf8)

  /// An archive of two accounts, of whose snapshots most are forgotten, and the CARs of those that
  /// are kept.
  ///
  /// It has what an archive can have: blobs that only forgotten snapshots refer to, some that came
  /// later than what refers to them, extras, missing ones, documents, orders in pages.
  private func forgetful(_ random: inout SeededGenerator) throws -> (Series, cars: [[UInt8]]) {
    var series = try Series()
    var cars: [String: [UInt8]] = [:]
    var alice = try TestRepository(posts: 700)
    var bob = try TestRepository(posts: 30)
    bob.did = "did:plc:z72i7hdynmk6r22z27h6tvur"
    for day in 1...6 {
      let blob = CID.blob(Self.blobs[day - 1])
      try alice.advance()
      try bob.advance()
      if day > 1 { alice.remove("app.bsky.feed.post/image\(day - 1)") }
      try alice.add("app.bsky.feed.post/image\(day)", blob: blob)
      try alice.add("app.bsky.feed.like/\(day)", ["day": .integer(Int128(day))])
      try bob.add("app.bsky.feed.post/shared", blob: .blob(Self.blobs[4]))
      try bob.add("app.bsky.feed.post/mine", blob: .blob([UInt8(day)]))
      let car = try day == 3 ? shuffled(alice.car(), using: &random) : alice.car()
      let time = "2026-01-0\(day)T00:00:0"
      cars["\(time)0Z"] = car
      try series.pack(
        car, blobs: ["\(day)": Self.blobs[day - 1], "x": Self.extra, "\(CID.blob([1])).png": [2]]
      ) { options in
        options.provenance.createdAt = "\(time)0Z"
        options.keepsExtras = day == 2
        options.facts.plcLog = Array("[\(day)]".utf8)
      }
      cars["\(time)1Z"] = try bob.car()
      try series.pack(bob.car(), blobs: ["mine": [UInt8(day)]]) {
        $0.provenance.createdAt = "\(time)1Z"
      }
    }
    _ = try RetentionPolicy(last: 1, weekly: 2).prune(
      FileStorage.open(series.path), name: "a")
    let kept = try SnapshotHistory(of: series.reader).entries
    return (series, try kept.map { try #require(cars[$0.createdAt]) })
  }

  /// What compacting has to make of an archive.
  private func check(
    _ reader: ArchiveReader, _ cars: [[UInt8]], held: Set<CID>,
    at location: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try reader.cars() == cars, sourceLocation: location)
    let (contents, needs) = (try reader.contents(), try reader.needs(cars, held: held))
    #expect(contents.subtracting(needs).isEmpty, "too much", sourceLocation: location)
    #expect(needs.subtracting(contents).isEmpty, "too little", sourceLocation: location)
    #expect(try reader.verify().findings == [], sourceLocation: location)
    #expect(try reader.hasManifestsAlone(), sourceLocation: location)
  }

  @Test func `leaves exactly what the kept snapshots need`() throws {
    var random = SeededGenerator()
    print("Compacting an archive: \(random)")
    let (series, cars) = try forgetful(&random)
    let before = try SnapshotHistory(of: series.reader)
    #expect(before.entries.count == 4)
    let size = try series.bytes.count
    let held = try series.reader.contents()
    let report = try ArchiveCopier().compact(series.path)
    #expect(report.isReplaced && report.snapshotCount == 4 && report.oldSize == UInt64(size))
    #expect(try UInt64(series.bytes.count) == report.generation.committedLength)
    #expect(report.generation.committedLength < UInt64(size))
    #expect(report.generation.number == 1 && report.generation.segments.count == 1)
    let reader = try series.reader
    try check(reader, cars, held: held)
    // A blob of a forgotten day is gone, one of a kept day is there.
    #expect(try reader.section(of: .blob(Self.blobs[2])) == nil)
    #expect(try reader.section(of: .blob(Self.blobs[5])) != nil)
    // Bob's is there, though it was alice who brought it, on a day that is forgotten.
    #expect(try reader.section(of: .blob(Self.blobs[4])) != nil)
    #expect(try reader.section(of: .blob(Self.extra)) != nil)
    let after = try SnapshotHistory(of: reader)
    #expect(after.entries.map(\.createdAt) == before.entries.map(\.createdAt))
    #expect(after.entries.map(\.blobs) == before.entries.map(\.blobs))
    #expect(try SnapshotVerifier().verify(reader, .full).damage == [])
    #expect(try ZstdProgram.accepts(series.path.string))
    #expect(try IndependentReader.run(["verify", series.path.string]).status == 0)
    #expect(try ZstdProgram.decompress(series.path.string).starts(with: cars[3].prefix(59)))
    // Once more there is nothing to gain, and then it is left as it is.
    let bytes = try series.bytes
    let again = try ArchiveCopier().compact(series.path)
    #expect(!again.isReplaced && again.leftOutCount == 0)
    #expect(try series.bytes == bytes)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: series.folder.path).sorted() == [
        "a.car.zst", "blobs", "repo.car",
      ])
  }

  @Test func `puts all blocks before all blobs`() throws {
    var series = try Series()
    var repository = TestRepository()
    let blobs = (0..<5).map { number in [UInt8](repeating: UInt8(number), count: 100_000) }
    for (number, blob) in blobs.enumerated() {
      try repository.add("a.b.c/\(number)", blob: .blob(blob))
      try series.pack(repository.car(), blobs: ["\(number)": blob]) {
        $0.provenance.createdAt = "2026-02-0\(number + 1)T00:00:00Z"
      }
      try repository.advance()
    }
    #expect(try ArchiveCopier().compact(series.path).isReplaced)
    let reader = try series.reader
    let blocks = try repository.records.values.map { record in
      try #require(try reader.ordinal(of: CID(codec: .dagCBOR, hashing: record.span)))
    }
    let last = try #require(blocks.max())
    for blob in blobs { #expect(try #require(try reader.ordinal(of: .blob(blob))) > last) }
    #expect(try SnapshotVerifier().verify(reader, .full).damage == [])
  }

  @Test func `does not keep a blob for a block that no record path leads to`() throws {
    var series = try Series()
    var repository = try TestRepository(posts: 20)
    try repository.add("a.b.c/image", blob: .blob(Self.blobs[0]))
    let record = try #require(repository.records[Array("a.b.c/image".utf8)])
    try series.pack(repository.car(), blobs: ["0": Self.blobs[0]])
    repository.remove("a.b.c/image")
    try repository.advance()
    // The server sends the record's block anyway, as some do.
    repository.strays = [Block(cid: CID(codec: .dagCBOR, hashing: record.span), bytes: record)]
    let car = try repository.car()
    try series.pack(car) { $0.provenance.createdAt = "2026-02-01T00:00:00Z" }
    _ = try RetentionPolicy(last: 1).prune(FileStorage.open(series.path), name: "a")
    #expect(try ArchiveCopier().compact(series.path).isReplaced)
    let reader = try series.reader
    #expect(try reader.section(of: .blob(Self.blobs[0])) == nil)
    try check(reader, [car], held: [.blob(Self.blobs[0])])
  }

  @Test func `puts a CAR in an order of its own back into that`() throws {
    var random = SeededGenerator()
    print("Compacting an archive: \(random)")
    var series = try Series()
    var repository = try TestRepository(posts: 2500)
    try series.pack(repository.car())
    try repository.add("a.b.c/new", ["text": .string("new")])
    try repository.advance()
    let once = try shuffled(repository.car(), using: &random)
    // With all of its blocks once more.
    let car =
      try once + shuffled(repository.car(), using: &random).dropFirst(CARHeader(once.span).length)
    try series.pack(car) { $0.provenance.createdAt = "2026-02-01T00:00:00Z" }
    _ = try RetentionPolicy(last: 1).prune(FileStorage.open(series.path), name: "a")
    let before = try SnapshotHistory(of: series.reader)
    let paged = try ArchivedSnapshot(before.entries[0].cid, in: series.reader).snapshot.car
    guard !paged.pages.isEmpty else {
      Issue.record("the order is not long enough to be gathered")
      return
    }
    // In that order the records do not compress as well, but what is forgotten is to go.
    let report = try ArchiveCopier().compact(series.path)
    #expect(report.isReplaced && report.leftOutCount > 0)
    let reader = try series.reader
    try check(reader, [car], held: [])
  }

  @Test func `into another file only reads the one there is`() throws {
    var random = SeededGenerator(seed: 1)
    let (series, cars) = try forgetful(&random)
    let before = try series.bytes
    let path = FilePath(series.folder.file("other.car.zst"))
    let held = try series.reader.contents()
    // Another writer may write to it in the meantime.
    let lock = try FileStorage.open(series.path)
    let target = try AtomicFile(path, replacing: false)
    let report = try ArchiveCopier().compact(series.path, to: target)
    #expect(report.isReplaced && lock.path == series.path)
    #expect(try series.bytes == before)
    try check(ArchiveReader(path: path), cars, held: held)
    #expect(throws: BackupError.self) { _ = try AtomicFile(path, replacing: false) }
  }

  @Test func `goes on with packing, and compacts again`() throws {
    var series = try Series()
    var repository = try TestRepository(posts: 100)
    var cars: [[UInt8]] = []
    for round in 0..<12 {
      try repository.add("a.b.c/\(round)", ["round": .integer(Int128(round))])
      try repository.advance()
      cars.append(try repository.car())
      try series.pack(repository.car()) {
        $0.provenance.createdAt = "2026-01-01T00:00:\(10 + round)Z"
      }
      guard round % 3 == 2 else { continue }
      _ = try RetentionPolicy(last: 3).prune(
        FileStorage.open(series.path), name: "a")
      _ = try ArchiveCopier().compact(series.path)
      cars = cars.suffix(3)
      let reader = try series.reader
      try check(reader, cars, held: [])
      #expect(reader.generation.number == 1)
    }
  }

  @Test func `drops what a write that never came to a snapshot has left`() throws {
    let series = try Series()
    var packed = series
    let car = try TestRepository(posts: 100).car()
    try packed.pack(car)
    let stray = [UInt8](repeating: 1, count: 100_000)
    do {
      var writer = try ArchiveWriter.open(
        FileStorage.open(series.path), carHeader: series.reader.carHeader)
      try writer.append(.blob(stray), stray.span)
      try writer.checkpoint()
    }
    let report = try ArchiveCopier().compact(series.path)
    #expect(report.isReplaced)
    #expect(try series.reader.section(of: .blob(stray)) == nil)
    try check(series.reader, [car], held: [])
  }

  @Test func `refuses an archive with a tail, which may be a snapshot whose footer is damaged`()
    throws
  {
    var series = try Series()
    try series.pack(TestRepository(posts: 100).car())
    try series.pack(TestRepository(posts: 200).car())
    var bytes = try series.bytes
    bytes[bytes.count - 100] ^= 1
    let path = FilePath(try series.folder.write("tail.car.zst", bytes))
    #expect {
      _ = try ArchiveCopier().compact(path)
    } throws: { error in
      guard case .unfinishedArchive? = error as? BackupError else { return false }
      return true
    }
    #expect(try series.folder.read("tail.car.zst") == bytes)
    // An append takes over what is there, including the footer.
    _ = try RetentionPolicy(last: 2).prune(FileStorage.open(path), name: "a")
    #expect(try SnapshotHistory(of: ArchiveReader(path: path)).entries.count == 2)
  }

  @Test func `does not keep manifests of any length in memory`() throws {
    var archive = try SeriesArchive()
    for day in 1...5 {
      try archive.add(TestRepository(posts: day).car(), at: "2026-01-0\(day)T00:00:00Z") {
        $0.tool = String(repeating: "\(day)", count: 3 << 20)
      }
    }
    archive.add([Block(cid: .blob([9]), bytes: [9])])
    try archive.commit()
    #expect(try ArchiveCopier().compact(archive.path).leftOutCount == 1)
    try check(archive.reader(), archive.snapshots.map(\.car), held: [])
  }

  @Test func `keeps fields that nobody here knows, and what they lead to`() throws {
    var archive = try SeriesArchive()
    for day in 0..<3 {
      try archive.add(
        TestRepository(posts: 50 + day, revision: day).car(), at: "2026-01-0\(day + 1)T00:00:00Z")
    }
    archive.add([Block(cid: .blob([9]), bytes: [9])])
    let path = try archive.withFurtherFields(at: "2026-01-04T00:00:00Z")
    _ = try RetentionPolicy(last: 2).prune(FileStorage.open(path), name: "a")
    #expect(try ArchiveCopier().compact(path).isReplaced)
    let reader = try ArchiveReader(path: path)
    let head = try #require(reader.generation.head?.cid)
    let body = try #require(try reader.body(of: head))
    let map = try DAGCBORDecoder.decode(body.span)
    #expect(map["future"] == SeriesArchive.future)
    #expect(map["car"]?["more"] == .string("about the CAR"))
    #expect(try reader.body(of: SeriesArchive.page.cid) == SeriesArchive.page.bytes)
    #expect(try reader.body(of: .blob(SeriesArchive.leaf)) == SeriesArchive.leaf)
    #expect(try reader.section(of: .blob([9])) == nil)
    #expect(try reader.cars() == [archive.snapshots[2].car, archive.snapshots[2].car])
  }

  @Test func `keeps optional feature bits that nobody here knows`() throws {
    var series = try Series()
    for round in 0..<3 {
      try series.pack(TestRepository(posts: 50 * (round + 1), revision: round).car())
    }
    var options = ArchiveOptions()
    options.optionalFeatures = 1 << 40 | 1
    do {
      var writer = try ArchiveWriter.open(
        FileStorage.open(series.path), carHeader: series.reader.carHeader, options: options)
      try writer.append(.blob([1]), [1].span)
      try writer.commit(manifest: nil)
    }
    let features = try series.reader.generation.features
    #expect(features == FeatureFlags(required: FeatureFlags.packedIndex, optional: 1 << 40 | 1))
    _ = try RetentionPolicy(last: 1).prune(FileStorage.open(series.path), name: "a")
    #expect(try series.reader.generation.features == features)
    #expect(try ArchiveCopier().compact(series.path).isReplaced)
    #expect(try series.reader.generation.features == features)
  }

  @Test func `leaves the old file untouched whatever fails`() throws {
    var random = SeededGenerator(seed: 2)
    let (series, cars) = try forgetful(&random)
    let (before, held) = (try series.bytes, try series.reader.contents())
    let path = series.path
    for fault in [FaultyStorage.Fault.failure, .flip] {
      var place = 0
      var isReached = true
      while isReached {
        var storage: FaultyStorage?
        let compactor = ArchiveCopier(observer: { _ in }) { file, _ in
          let faulty = FaultyStorage(try file.storage(), fault, at: place)
          storage = faulty
          return faulty
        }
        do {
          let report = try compactor.compact(path)
          // It completed, so nothing was wrong.
          #expect(report.isReplaced)
          isReached = storage?.isReached ?? true
          #expect(!isReached, "\(fault) \(place)")
        } catch {
          #expect(try series.bytes == before, "\(fault) \(place)")
          #expect(!series.folder.names().contains { $0.hasSuffix(".partial") }, "\(fault) \(place)")
          if fault == .flip {
            guard case .copyFailed? = error as? BackupError else {
              Issue.record("\(place): \(error)")
              return
            }
          }
        }
        place += 1
      }
      #expect(place > 5, "\(fault)")
      print("Compacting an archive: \(place - 1) faults (\(fault))")
      try check(series.reader, cars, held: held)
      try series.folder.write("a.car.zst", before)
    }
  }

  @Test func `refuses a damaged archive, wherever the damage is`() throws {
    var series = try Series()
    var repository = try TestRepository(posts: 150)
    try repository.add("a.b.c/image", blob: .blob(Self.blobs[1]))
    try series.pack(repository.car(), blobs: ["1": Self.blobs[1]])
    try repository.add("a.b.c/more", ["text": .string("more")])
    try series.pack(repository.car())
    let bytes = try series.bytes
    for place in stride(from: 3, to: bytes.count, by: max(1, bytes.count / 60)) {
      var damaged = bytes
      damaged[place] ^= 0x10
      let path = FilePath(try series.folder.write("damaged.car.zst", damaged))
      do {
        // Damage to what is not needed, such as an older footer, is left behind.
        let report = try ArchiveCopier().compact(path)
        #expect(try ArchiveReader(path: path).cars() == series.heads.map { series.cars[$0] })
        #expect(report.isReplaced)
      } catch {
        #expect(try series.folder.read("damaged.car.zst") == damaged, "byte \(place)")
      }
    }
    // Nor is one compacted of which only the beginning is left.
    let path = FilePath(try series.folder.write("damaged.car.zst", Array(bytes.prefix(1000))))
    #expect(throws: BackupError.self) { _ = try ArchiveCopier().compact(path) }
    #expect(try series.folder.read("damaged.car.zst").count == 1000)
  }

  @Test func `says that the archive is damaged if it says of itself what is not so`() throws {
    let folder = try TemporaryFolder()
    let repository = try TestRepository(posts: 30)
    // More records than there are; a CAR that is another; a document, an extra that are not there.
    let changes: [(inout Snapshot) throws -> Void] = [
      { $0.counts.records += 1 }, { $0.car.sha256 = SHA256.digest(of: [1].span) },
      { $0.plcLog = .blob([1]) },
      { $0.extrasPages = [.blob([2])] }, { $0.car.byteCount += 1 },
    ]
    for change in changes {
      let path = try handMadeArchive(
        in: folder, repository, further: [Block(cid: .blob([9]), bytes: [9])]
      ) { snapshot in
        do { try change(&snapshot) } catch { Issue.record(error) }
      }
      let before = try folder.read("made.car.zst")
      #expect {
        _ = try ArchiveCopier().compact(path)
      } throws: { error in
        guard case .damagedArchive? = error as? BackupError else { return false }
        return true
      }
      #expect(try folder.read("made.car.zst") == before)
      try FileManager.default.removeItem(atPath: path.string)
    }
  }

  @Test func `refuses what a later version wrote`() throws {
    var archive = try SeriesArchive()
    try archive.add(TestRepository(posts: 5).car())
    let last = try archive.snapshots[0].snapshot.encode()
    var map = try #require(try DAGCBORDecoder.decode(last.span).map)
    map["carpack"] = .integer(2)
    let bytes = try DAGCBOREncoder.encode(.map(map))
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    do {
      var writer = try ArchiveWriter.open(
        FileStorage.open(archive.path), carHeader: archive.reader().carHeader)
      try writer.append(cid, bytes.span)
      try writer.commit(manifest: cid)
    }
    let before = try archive.bytes
    #expect(throws: SnapshotError.unknownVersion(2)) {
      _ = try ArchiveCopier().compact(archive.path)
    }
    #expect(throws: SnapshotError.unknownVersion(2)) {
      _ = try RetentionPolicy(last: 1).prune(
        FileStorage.open(archive.path), name: "a")
    }
    #expect(try archive.bytes == before)
  }

  @Test func `refuses while another writes to it`() throws {
    var series = try Series()
    try series.pack(TestRepository(posts: 10).car())
    let before = try series.bytes
    let writer = try FileStorage.open(series.path)
    #expect(throws: ArchiveError(.locked)) { _ = try ArchiveCopier().compact(series.path) }
    #expect(try series.bytes == before && writer.size == UInt64(before.count))
  }

  @Test func `does not put a file in the place of one that came there meanwhile`() throws {
    var random = SeededGenerator(seed: 3)
    let (series, _) = try forgetful(&random)
    let path = series.path
    let other = Array("somebody else's".utf8)
    let compactor = ArchiveCopier(observer: { _ in }) { file, _ in
      // While it is being compacted, another file takes its name.
      try FileManager.default.removeItem(atPath: path.string)
      try series.folder.write("a.car.zst", other)
      return try file.storage()
    }
    #expect(throws: ArchiveError(.changedMeanwhile)) { _ = try compactor.compact(path) }
    #expect(try series.bytes == other)
  }

  @Test func `keeps the mode of the file, and replaces what a link leads to`() throws {
    var random = SeededGenerator(seed: 4)
    let (series, _) = try forgetful(&random)
    let manager = FileManager.default
    try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: series.path.string)
    let link = series.folder.file("link.car.zst")
    try manager.createSymbolicLink(atPath: link, withDestinationPath: "a.car.zst")
    let size = try series.bytes.count
    #expect(try ArchiveCopier().compact(FilePath(link)).isReplaced)
    #expect(try series.bytes.count < size)
    #expect(try manager.destinationOfSymbolicLink(atPath: link) == "a.car.zst")
    let attributes = try manager.attributesOfItem(atPath: series.path.string)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }
}
