import ATProtocol
import ArchiveTestSupport
import IPLD
internal import Repository
import SystemPackage
import TestSupport
import Testing

@testable import Archive
@testable import Copying
@testable import Files
@testable import Packing
@testable import Snapshots
@testable import Verification

/// What was done to a file at random.
private enum Damage {
  /// One thing, and at times two.
  static func befall(_ bytes: [UInt8], _ random: inout SeededGenerator) -> (
    bytes: [UInt8], what: String
  ) {
    var (bytes, what) = (bytes, "")
    for _ in 0..<(random.next() % 3 == 0 ? 2 : 1) {
      guard bytes.count > 1000 else { break }
      // The ends of the file, where indexes and footers lie, as often as the rest.
      let span = random.next() % 2 == 0 ? bytes.count : min(bytes.count, 1500)
      let place = bytes.count - 1 - Int(random.next() % UInt64(span))
      let length = [1, 16, 300, 4096][Int(random.next() % 4)]
      let end = min(bytes.count, place + length)
      switch random.next() % 6 {
      case 0:
        bytes[place] ^= 1 << UInt8(random.next() % 8)
        what += " a bit at \(place)"
      case 1:
        for index in place..<end { bytes[index] = 0 }
        what += " \(place)..<\(end) zeroed"
      case 2:
        bytes.insert(contentsOf: random.bytes(length), at: place)
        what += " \(length) inserted at \(place)"
      case 3:
        bytes.removeSubrange(place..<end)
        what += " \(place)..<\(end) removed"
      case 4:
        let other = Int(random.next() % UInt64(bytes.count - (end - place)))
        for index in 0..<(end - place) { bytes.swapAt(place + index, other + index) }
        what += " \(end - place) exchanged at \(place) and \(other)"
      default:
        bytes.removeSubrange(place...)
        what += " cut off at \(place)"
      }
    }
    return (bytes, what)
  }
}

/// An archive of some generations, and all that was ever in it.
private struct Original {
  /// A snapshot, and all that its CAR needs.
  struct Known {
    let head: CID
    let car: [UInt8]
    let sections: Set<CID>
    /// The manifests that its order is relative to.
    let bases: [CID]
  }

  let series: Series
  let bytes: [UInt8]
  let reader: ArchiveReader
  /// The newest CAR, and a folder with all blobs.
  let newest: [UInt8]
  var blobs: BlobFolder { BlobFolder(series.folder.file("blobs")) }
  private(set) var snapshots: [Known] = []
  /// The lengths the file had when a generation had ended.
  private let ends: Set<Int>
  private let repository: TestRepository

  init(_ random: inout SeededGenerator) throws {
    var series = try Series()
    var repository = try TestRepository(posts: 5 + Int(random.next() % 40))
    var blobs: [String: [UInt8]] = [:]
    var ends: Set<Int> = []
    for number in 0..<(random.next() % 4 == 0 ? 1 : 3 + Int(random.next() % 10)) {
      repository.rev = Self.rev(number)
      if random.next() % 4 > 0 {
        let length = [300, 1000, 66_000, 70_000][Int(random.next() % 4)]
        let blob = random.next() % 2 == 0 ? random.bytes(length) : random.text(length)
        blobs["\(number)"] = blob
        try repository.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
      } else {
        try repository.add("app.bsky.feed.like/l\(number)", ["n": .integer(Int128(number))])
      }
      // Names no record has, so that these are extras.
      if random.next() % 4 == 0 { blobs["extra \(number)"] = random.bytes(500) }
      try series.pack(repository.car(), blobs: blobs) { $0.keepsExtras = true }
      try ends.insert(series.bytes.count)
    }
    self.series = series
    self.repository = repository
    self.ends = ends
    bytes = try series.bytes
    reader = try series.reader
    newest = try repository.car()
    for head in series.heads { snapshots.append(try known(head)) }
  }

  private static func rev(_ number: Int) -> String {
    let digits = Array("234567abcdefghijklmnopqrstuvwxyz")
    return "3lscuqc52o\(digits[number / 32])\(digits[number % 32])x"
  }

  private func known(_ head: CID) throws -> Known {
    let snapshot = try ArchivedSnapshot(head, in: reader)
    var bases: [CID] = []
    var next = snapshot.snapshot.car.base
    while let base = next {
      bases.append(base)
      next = try ArchivedSnapshot(base, in: reader).snapshot.car.base
    }
    let ordinals = try snapshot.order().runs.joined()
    return Known(
      head: head, car: try #require(series.cars[head]),
      sections: Set(try ordinals.map { try reader.section(at: $0).cid }), bases: bases)
  }

  /// The snapshots of which everything is among these sections.
  func snapshots(among found: Set<CID>) -> [Known] {
    snapshots.filter {
      found.contains($0.head) && found.isSuperset(of: $0.sections)
        && found.isSuperset(of: $0.bases)
    }
  }

  /// Whether these bytes are what was there when a generation had ended.
  func isWhole(_ bytes: [UInt8]) -> Bool {
    ends.contains(bytes.count) && self.bytes.starts(with: bytes)
  }

  /// How long frame 0 is, which holds the CAR header.
  var headerLength: Int {
    get throws {
      let first = try reader.withFile { (file) in try DataFrame(file, at: 0, limit: file.count) }
      return first.end
    }
  }

  /// A CAR of what the repository may become next.
  func nextCAR() throws -> [UInt8] {
    var repository = repository
    repository.rev = Self.rev(100)
    try repository.add("app.bsky.feed.like/next", ["n": .integer(100)])
    return try repository.car()
  }
}

@Suite(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
struct `What an independent walker finds intact in a damaged archive` {
  private let folder: TemporaryFolder
  private let options = RepositoryPacker.Options(
    tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })

  init() throws { folder = try TemporaryFolder() }

  private func walk(_ path: String) throws -> Set<CID> {
    let result = try IndependentReader.run(["walk", path])
    return Set(
      String(decoding: result.output, as: UTF8.self).split(separator: "\n").compactMap {
        try? CID($0)
      })
  }

  @Test
  func `is given back by repair in place, by repair into a new file, and by the next pack`()
    throws
  {
    var (lostCount, caseCount) = (0, 0)
    for var round in Torture.rounds(6, from: 0x5ec0_1000) {
      let original = try Original(&round.random)
      for _ in 0..<5 {
        let (damaged, what) = Damage.befall(original.bytes, &round.random)
        let comment: Comment = "\(round):\(what)"
        try Torture.keep(damaged, "damaged-\(caseCount).car.zst")
        let path = try folder.write("damaged.car.zst", damaged)
        let found = try walk(path)
        caseCount += 1
        lostCount += Int(original.reader.generation.sectionCount) - found.count
        try checkVerdict(of: path, original, isWhole: original.isWhole(damaged), comment)
        // Manifests are made again in a new file.
        try checkSalvage(
          of: path, found.subtracting(original.series.heads), original, found, comment)
        try checkPack(of: path, found, original, comment)
        try folder.write("damaged.car.zst", damaged)
        try checkRepair(of: path, found, original, comment)
      }
    }
    Torture.report(counts: "\(caseCount) damages, \(lostCount) sections lost")
    #expect(lostCount > 0)
  }

  private func checkVerdict(
    of path: String, _ original: Original, isWhole: Bool, _ comment: Comment
  ) throws {
    do {
      let reader = try ArchiveReader(path: FilePath(path))
      let verdict = try SnapshotVerifier().verify(reader, .full).verdict
      #expect((verdict == .intact) == isWhole, comment)
      try checkMissing(reader, original, comment)
    } catch is ArchiveError {
      #expect(!isWhole, comment)
    }
  }

  /// Each blob that the newest snapshot refers to is listed as missing or can be read.
  private func checkMissing(_ reader: ArchiveReader, _ original: Original, _ comment: Comment)
    throws
  {
    let newest: ArchivedSnapshot
    let missing: [ArchivedSnapshot.MissingBlob]
    do {
      newest = try ArchivedSnapshot.newest(in: reader)
      missing = try newest.missingNow().blobs
    } catch is SnapshotError {
      return
    } catch is BackupError {
      return
    }
    let listed = Set(missing.map(\.blob.cid))
    let car = try RestoredRepository(newest).withBytes { $0.array }
    for blob in try RepositoryInspection(car: car).blobs.entries
    where !listed.contains(blob.cid) {
      do {
        let isThere = try reader.body(of: blob.cid) == original.reader.body(of: blob.cid)
        #expect(isThere, "\(comment): \(blob.cid) is not listed as missing")
      } catch {
        Issue.record("\(comment): \(blob.cid) is not listed as missing: \(error)")
      }
    }
  }

  private func checkSalvage(
    of path: String, _ sections: Set<CID>, _ original: Original, _ found: Set<CID>,
    _ comment: Comment
  ) throws {
    let new = FilePath(folder.file("new.car.zst"))
    do {
      _ = try ArchiveCopier().salvage(
        ArchiveReader(path: FilePath(path)), into: FileStorage.openOrCreate(new),
        by: options.provenance)
    } catch {
      // Without a manifest and without the CAR's header nothing says what to begin an archive with.
      let isHeadless = found.isDisjoint(with: original.series.heads)
      #expect(found.isEmpty || isHeadless, "\(comment): \(error)")
      return
    }
    let reader = try ArchiveReader(path: new)
    try check(reader, sections, original, found, "\(comment), a new file")
    guard reader.generation.head != nil else { return }
    // What was lost is left out, or noted, and what is there continues as an archive like any
    // other.
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.verdict != .damaged, "\(comment), a new file: \(report)")
    do {
      _ = try ArchiveCopier().compact(new)
    } catch {
      Issue.record("\(comment): a new file cannot be compacted: \(error)")
    }
  }

  /// Packing without any repair refuses and leaves the file as it is, or keeps all snapshots that
  /// are intact.
  ///
  /// It keeps nothing of a torn frame after the last footer.
  private func checkPack(
    of path: String, _ found: Set<CID>, _ original: Original, _ comment: Comment
  ) throws {
    let before = try folder.read("damaged.car.zst")
    let comment: Comment = "\(comment), packed at once"
    let car = try before.count % 2 == 0 ? original.nextCAR() : original.newest
    let report: RepositoryPacker.Report
    do {
      report = try pack(car, [original.blobs], into: path)
    } catch {
      // Only of what has lost its beginning may it say that it is something else.
      if error as? ArchiveError == ArchiveError(.begunOtherwise),
        try before.starts(with: original.bytes.prefix(original.headerLength))
      {
        Issue.record("\(comment): \(error)")
      }
      #expect(try folder.read("damaged.car.zst") == before, comment)
      return
    }
    let reader = try ArchiveReader(path: FilePath(path))
    try check(reader, [], original, found, comment)
    try checkPacked(car, reader, comment)
    if report.isUnchanged || report.isHealed, report.damage.isNone {
      let verdict = try SnapshotVerifier().verify(reader, .full).verdict
      #expect(verdict != .damaged, comment)
    }
  }

  /// What was packed is there, whatever was damaged before.
  private func checkPacked(_ car: [UInt8], _ reader: ArchiveReader, _ comment: Comment) throws {
    do {
      let digest = SHA256.digest(of: car.span)
      let entries = try SnapshotHistory(of: reader).entries
      let entry = try #require(entries.first { $0.carSHA256 == digest }, comment)
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
      let isSame = restored.withBytes { $0.array } == car
      #expect(isSame, comment)
      for blob in try RepositoryInspection(car: car).blobs.entries {
        let body = try reader.body(of: blob.cid)
        #expect(body != nil, comment)
      }
    } catch {
      Issue.record("\(comment): what was packed is not there: \(error)")
    }
  }

  @discardableResult
  private func pack(_ car: [UInt8], _ folders: [BlobFolder] = [], into path: String) throws
    -> RepositoryPacker.Report
  {
    try folder.write("next.car", car)
    return try RepositoryPacker(options).pack(
      InputFile(folder.file("next.car")), folders: folders,
      into: FileStorage.open(FilePath(path)))
  }

  private func checkRepair(
    of path: String, _ found: Set<CID>, _ original: Original, _ comment: Comment
  ) throws {
    let report: ArchiveRepair.Outcome
    do {
      report = try ArchiveRepair.repair(FileStorage.open(FilePath(path)))
    } catch {
      #expect(original.snapshots(among: found).isEmpty, "\(comment): \(error)")
      return
    }
    let reader = try ArchiveReader(path: FilePath(path))
    try check(reader, found, original, found, "\(comment), repaired")
    let verdict = try SnapshotVerifier().verify(reader, .full).verdict
    #expect((verdict == .damaged) == (report.damage != nil), comment)
    let repaired = try folder.read("damaged.car.zst")
    _ = try ArchiveRepair.repair(FileStorage.open(FilePath(path)))
    #expect(try folder.read("damaged.car.zst") == repaired, comment)
    try checkNextPack(of: path, found, original, comment)
  }

  private func checkNextPack(
    of path: String, _ found: Set<CID>, _ original: Original, _ comment: Comment
  ) throws {
    do {
      try pack(original.nextCAR(), into: path)
    } catch {
      Issue.record("\(comment): the next pack says \(error)")
    }
    try check(
      ArchiveReader(path: FilePath(path)), found, original, found, "\(comment), packed again")
  }

  private func check(
    _ reader: ArchiveReader, _ sections: Set<CID>, _ original: Original, _ found: Set<CID>,
    _ comment: Comment
  ) throws {
    for cid in sections where try reader.body(of: cid) != original.reader.body(of: cid) {
      Issue.record("\(comment): \(cid) is not given back")
    }
    let listed = try SnapshotHistory(of: reader).entries
    for snapshot in original.snapshots(among: found) {
      let digest = SHA256.digest(of: snapshot.car.span)
      guard let entry = listed.first(where: { $0.carSHA256 == digest }) else {
        Issue.record("\(comment): the snapshot \(snapshot.head) is not listed")
        continue
      }
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
      let isSame = restored.withBytes { $0.array } == snapshot.car
      #expect(isSame, comment)
    }
  }
}
