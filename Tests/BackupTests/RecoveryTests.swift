import Archive
import ArchiveTestSupport
import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Backup

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
      let span = random.next() % 2 == 0 ? bytes.count : 1500
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

@Suite(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
struct `What an independent walker finds intact in a damaged archive` {
  /// A snapshot, and all that its CAR needs.
  private struct Known {
    let head: CID
    let car: [UInt8]
    let sections: Set<CID>
    /// The manifests that its order is relative to.
    let bases: [CID]
  }

  private static func series(_ random: inout SeededGenerator) throws -> Series {
    var series = try Series()
    var repository = try TestRepository(posts: 30)
    var blobs: [String: [UInt8]] = [:]
    for (number, length) in [300, 70_000, 2000, 66_000, 1000].enumerated() {
      let blob = random.next() % 2 == 0 ? random.bytes(length) : random.text(length)
      blobs["\(number)"] = blob
      repository.rev = "3lscuqc52or\(2 + number)x"
      try repository.add("app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
      try series.pack(repository.car(), blobs: blobs)
    }
    return series
  }

  private static func known(_ series: Series) throws -> [Known] {
    let reader = try series.reader
    return try series.heads.map { head in
      let snapshot = try ArchivedSnapshot(head, in: reader)
      var bases: [CID] = []
      var next = snapshot.snapshot.car.base?.manifest
      while let base = next {
        bases.append(base)
        next = try ArchivedSnapshot(base, in: reader).snapshot.car.base?.manifest
      }
      let ordinals = try snapshot.order().runs.joined()
      return Known(
        head: head, car: try #require(series.cars[head]),
        sections: Set(try ordinals.map { try reader.section(at: $0).cid }), bases: bases)
    }
  }

  private static func walk(_ path: String) throws -> Set<CID> {
    let result = try IndependentReader.run(["walk", path])
    return Set(
      String(decoding: result.output, as: UTF8.self).split(separator: "\n").compactMap {
        try? CID($0)
      })
  }

  @Test func `is given back by repair in place, and by repair into a new file`() throws {
    var random = SeededGenerator(printing: 0x5ec0_0001)
    let series = try Self.series(&random)
    let bytes = try series.bytes
    let known = try Self.known(series)
    let whole = try series.reader
    var lostCount = 0
    for var round in Torture.rounds(40, from: 0x5ec0_1000) {
      let (damaged, what) = Damage.befall(bytes, &round.random)
      let comment: Comment = "\(round):\(what)"
      let path = try series.folder.write("damaged.car.zst", damaged)
      let found = try Self.walk(path)
      lostCount += Int(whole.generation.sectionCount) - found.count
      let snapshots = known.filter {
        found.contains($0.head) && found.isSuperset(of: $0.sections)
          && found.isSuperset(of: $0.bases)
      }
      // Manifests are made again in a new file.
      try checkSalvage(of: path, found.subtracting(series.heads), snapshots, whole, series, comment)
      try checkRepair(of: path, found, snapshots, whole, comment)
    }
    Torture.report(counts: "\(lostCount) sections were lost")
    #expect(lostCount > 0)
  }

  private func checkSalvage(
    of path: String, _ found: Set<CID>, _ snapshots: [Known], _ whole: ArchiveReader,
    _ series: Series, _ comment: Comment
  ) throws {
    let new = FilePath(series.folder.file("new.car.zst"))
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
    do {
      _ = try ArchiveSalvager.salvage(
        ArchiveReader(path: FilePath(path)), into: FileStorage.openOrCreate(new), options: options)
    } catch {
      // Without any section that is intact there is nothing to be saved.
      #expect(found.isEmpty && snapshots.isEmpty, "\(comment): \(error)")
      return
    }
    try check(ArchiveReader(path: new), found, snapshots, whole, comment)
  }

  private func checkRepair(
    of path: String, _ found: Set<CID>, _ snapshots: [Known], _ whole: ArchiveReader,
    _ comment: Comment
  ) throws {
    let report: ArchiveRepairer.Report
    do {
      report = try ArchiveRepairer().repair(FileStorage.open(FilePath(path)))
    } catch {
      #expect(snapshots.isEmpty, "\(comment): \(error)")
      return
    }
    let reader = try ArchiveReader(path: FilePath(path))
    try check(reader, found, snapshots, whole, comment)
    let verdict = try SnapshotVerifier().verify(reader, .full).verdict
    #expect((verdict == .damaged) == (report.damage != nil), comment)
    let repaired = try Data(contentsOf: URL(filePath: path))
    _ = try ArchiveRepairer().repair(FileStorage.open(FilePath(path)))
    #expect(try Data(contentsOf: URL(filePath: path)) == repaired, comment)
  }

  private func check(
    _ reader: ArchiveReader, _ found: Set<CID>, _ snapshots: [Known], _ whole: ArchiveReader,
    _ comment: Comment
  ) throws {
    for cid in found where try reader.body(of: cid) != whole.body(of: cid) {
      Issue.record("\(comment): \(cid) is not given back")
    }
    let listed = try SnapshotHistory(of: reader).entries
    for snapshot in snapshots {
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
