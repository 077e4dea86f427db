import ATProtocol
import Archive
import ArchiveTestSupport
import Copying
import Files
import IPLD
import Packing
internal import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `A snapshot in a damaged archive` {
  private static let options = RepositoryPacker.Options(
    tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
  private static let extra = [UInt8](repeating: 7, count: 90_000)
  private static let document = [UInt8](repeating: UInt8(ascii: " "), count: 70_000)

  private struct Salvaged {
    let folder: TemporaryFolder
    let path: FilePath
    let report: ArchiveCopier.SalvageReport
    let reader: ArchiveReader

    init(_ bytes: [UInt8], in folder: TemporaryFolder) throws {
      self.folder = folder
      let damaged = FilePath(try folder.write("damaged.car.zst", bytes))
      path = FilePath(folder.file("salvaged.car.zst"))
      report = try ArchiveCopier().salvage(
        ArchiveReader(path: damaged), into: FileStorage.openOrCreate(path),
        by: options.provenance)
      reader = try ArchiveReader(path: path)
    }

    /// The verdict on the new archive, which has to be one that compact and merge take.
    func verdict() throws -> SnapshotVerifier.Verdict {
      let verified = try SnapshotVerifier().verify(reader, .full)
      #expect(verified.damage == [])
      #expect(try isAccepted(path.string))
      let target = FilePath(folder.file("merged.car.zst"))
      _ = try ArchiveCopier().merge(
        [SourceArchive(reader, name: "a")], to: AtomicFile(target, replacing: true))
      return verified.verdict
    }
  }

  @Test func `that lost an extra says so, and is incomplete`() throws {
    var series = try Series()
    let other = Array("another extra".utf8)
    try series.pack(
      TestRepository(posts: 20).car(), blobs: ["extra": Self.extra, "other": other]
    ) { $0.keepsExtras = true }
    let bytes = try series.folder.damaging([.blob(Self.extra)], in: series.path)
    let salvaged = try Salvaged(bytes, in: series.folder)
    #expect(try salvaged.verdict() == .incomplete)
    let snapshot = try ArchivedSnapshot.newest(in: salvaged.reader)
    #expect(try snapshot.extras() == [.blob(other)])
    #expect(snapshot.snapshot.blobs.extras == 1)
    #expect(snapshot.snapshot.blobs.extrasBytes == UInt64(other.count))
    let missing = try snapshot.missingBlobs()
    #expect(missing.map(\.cid) == [.blob(Self.extra)])
    #expect(missing.map(\.reason) == [.lost] && missing.map(\.isReferenced) == [false])
    #expect(salvaged.report.snapshots.map(\.loss.blobs) == [[.blob(Self.extra)]])
    #expect(salvaged.report.snapshots.map(\.loss.blockCount) == [0])
    // The CAR is what it was.
    #expect(try salvaged.reader.cars() == series.heads.map { series.cars[$0] })
  }

  @Test func `that lost a document does not name it`() throws {
    var series = try Series()
    try series.pack(TestRepository(posts: 20).car()) { $0.facts.plcLog = Self.document }
    let log = CID(codec: .raw, hashing: Self.document.span)
    let bytes = try series.folder.damaging([log], in: series.path)
    let salvaged = try Salvaged(bytes, in: series.folder)
    #expect(try salvaged.verdict() == .intact)
    #expect(try ArchivedSnapshot.newest(in: salvaged.reader).snapshot.plcLog == nil)
    #expect(salvaged.report.snapshots.map(\.loss.documents) == [[log]])
    #expect(!salvaged.report.isWhole)
  }

  @Test func `that lost its commit is lost, its blocks are not`() throws {
    var archive = try SeriesArchive()
    var repositories: [TestRepository] = []
    for day in 0..<3 {
      var repository = try TestRepository(posts: 50)
      try repository.add("a.b.c/\(day)", ["day": .integer(Int128(day))])
      repositories.append(repository)
      // The commit of the second has a pack of its own.
      if day == 1 {
        try archive.add([repository.blocks()[0]])
        try archive.commit()
      }
      try archive.add(repository.car(), at: "2026-01-0\(day + 1)T00:00:00Z")
    }
    let lost = archive.snapshots[1]
    let bytes = try archive.folder.damaging([lost.snapshot.commit], in: archive.path)
    let salvaged = try Salvaged(bytes, in: archive.folder)
    #expect(salvaged.report.snapshots.map(\.old) == [0, 2].map { archive.snapshots[$0].cid })
    #expect(salvaged.report.lostSnapshots.count == 1)
    #expect(salvaged.report.lostSnapshots[0].contains("\(lost.cid)"))
    #expect(try salvaged.verdict() == .intact)
    for block in try repositories[1].blocks().dropFirst() {
      #expect(try salvaged.reader.body(of: block.cid) == block.bytes)
    }
    #expect(try salvaged.reader.cars() == [0, 2].map { archive.snapshots[$0].car })
  }

  @Test func `that lost the root of its only tree leaves its newest snapshot without records`()
    throws
  {
    var archive = try SeriesArchive()
    let repository = try TestRepository(posts: 50)
    let block = try repository.blocks()[0]
    let root = try Commit(block.bytes.span).data
    try archive.add(repository.car(), commits: false)
    try archive.commit(manifest: archive.snapshots[0].cid)
    let bytes = try archive.folder.damaging([root], in: archive.path)
    let salvaged = try Salvaged(bytes, in: archive.folder)
    #expect(salvaged.report.snapshots.map(\.old) == [archive.snapshots[0].cid])
    #expect(salvaged.report.lostSnapshots.count == 1)
    #expect(!salvaged.report.isWhole)
    #expect(try salvaged.verdict() == .incomplete)
    let left = try ArchivedSnapshot.newest(in: salvaged.reader).snapshot
    #expect(left.commit == block.cid && left.counts.records == 0 && !left.isComplete)
  }

  @Test func `whose order of blocks is lost has all of them in canonical order`() throws {
    var random = SeededGenerator(printing: 0x5a1_0003)
    var series = try Series()
    let repository = try TestRepository(posts: 1500)
    try series.pack(shuffled(repository.car(), using: &random))
    try series.pack(repository.car())
    let second = try ArchivedSnapshot(series.heads[1], in: series.reader).snapshot
    let pages = second.car.pages
    guard !pages.isEmpty else {
      Issue.record("the order is not long enough for pages")
      return
    }
    let bytes = try series.folder.damaging(pages, in: series.path)
    let salvaged = try Salvaged(bytes, in: series.folder)
    #expect(try salvaged.verdict() == .intact)
    let outcome = try #require(salvaged.report.snapshots.last)
    #expect(outcome.loss.blockCount == 0 && outcome.loss.recordCount == 0)
    let snapshot = try ArchivedSnapshot.newest(in: salvaged.reader).snapshot
    #expect(snapshot.isComplete && snapshot.counts == second.counts)
    #expect(snapshot.car.sectionCount == second.car.sectionCount)
  }

  @Test func `that lost tree nodes says what is left, and counts it`() throws {
    var archive = try SeriesArchive()
    let repository = try TestRepository(posts: 300)
    let blob = Array("a blob".utf8)
    var later = repository
    try later.add("a.b.c/blob", blob: .blob(blob))
    let block = try later.blocks()[0]
    let commit = try Commit(block.bytes.span)
    let nodes = try later.blocks().filter { MSTNode.isLikely($0.bytes.span) }
    let inner = try #require(nodes.first { $0.cid != commit.data })
    try archive.add(TestRepository(posts: 3).car())
    archive.add([inner])
    try archive.commit()
    try archive.add(later.car(), blobs: [blob])
    let bytes = try archive.folder.damaging([inner.cid], in: archive.path)
    let salvaged = try Salvaged(bytes, in: archive.folder)
    #expect(try salvaged.verdict() == .incomplete)
    let snapshot = try ArchivedSnapshot.newest(in: salvaged.reader).snapshot
    let car = try #require(try salvaged.reader.cars().last)
    let inspection = try RepositoryInspection(car: car)
    #expect(!snapshot.isComplete && inspection.missingNodes == [inner.cid])
    #expect(snapshot.counts.nodes == inspection.nodeCount)
    #expect(snapshot.counts.records == inspection.recordCount)
    #expect(snapshot.counts.blocks == inspection.distinctBlockCount)
    #expect(snapshot.car.byteCount == UInt64(car.count))
    // Records below a lost node are lost as well as those whose blocks are.
    let loss = try #require(salvaged.report.snapshots.last?.loss)
    let left = try #require(snapshot.remains)
    #expect(left.records == inspection.recordCount - inspection.missingRecordCount)
    #expect(left.recordsBefore == 301 && loss.recordCount == 301 - left.records)
    #expect(loss.recordCount > inspection.missingRecordCount)
    #expect(left.references == inspection.blobs.entries.count && left.referencesBefore == 1)
    #expect(loss.remains == left && snapshot.counts.recordBlocks == nil)
    #expect(try SnapshotHistory(of: salvaged.reader).newest?.remains == left)
    // A copy says what there was at first.
    let again = try Salvaged(archive.folder.read("salvaged.car.zst"), in: TemporaryFolder())
    #expect(again.report.isWhole)
    #expect(try ArchivedSnapshot.newest(in: again.reader).snapshot.remains == left)
  }
}

@Suite struct `Snapshots that no footer leads to` {
  private static let options = RepositoryPacker.Options(
    tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })

  /// An archive of five days whose chain passes by those with these numbers, which are in the file.
  private func archive(without: Set<Int>) throws -> (SeriesArchive, [CID]) {
    var archive = try SeriesArchive()
    var previous: CID?
    for day in 0..<5 {
      var repository = try TestRepository(posts: 30, revision: day)
      try repository.add("a.b.c/\(day)", ["day": .integer(Int128(day))])
      try archive.add(
        repository.car(), at: "2026-01-0\(day + 1)T00:00:00Z", commits: !without.contains(day)
      ) { $0.previous = previous }
      if !without.contains(day) { previous = archive.snapshots[day].cid }
    }
    if without.contains(4) { try archive.commit() }
    return (archive, archive.snapshots.map(\.cid))
  }

  private func links(_ manifests: [CID], unvouched: Set<Int>) -> [ChainLink] {
    manifests.indices.map { ChainLink(manifests[$0], isVouched: !unvouched.contains($0)) }
  }

  /// What the chain says, the oldest first.
  private func chain(_ reader: ArchiveReader) throws -> [String] {
    try SnapshotHistory(of: reader).entries.map { entry in
      let snapshot = try ArchivedSnapshot(entry.cid, in: reader).snapshot
      #expect(snapshot.isUnvouched != entry.isVouched)
      return "\(entry.createdAt.dropFirst(9).prefix(1))\(entry.isVouched ? "" : "?")"
    }
  }

  @Test(
    arguments: [
      ([1, 3], ["1", "2?", "3", "4?", "5"]), ([4], ["1", "2", "3", "5?", "4"]),
      ([0, 3, 4], ["1?", "2", "4?", "5?", "3"]),
    ] as [(Set<Int>, [String])])
  func `are named in place, and kept by all that follows`(_ found: Set<Int>, _ expected: [String])
    throws
  {
    let (archive, manifests) = try archive(without: found)
    let before = try archive.bytes
    let links = links(manifests, unvouched: found)
    func name() throws -> Generation? {
      let source = try SourceArchive(archive.reader(), name: "a")
      var writer = try ArchiveWriter.open(
        FileStorage.open(archive.path), carHeader: archive.reader().carHeader)
      return try SnapshotHistory.nameFound(links, in: source, with: &writer)
    }
    #expect(try name() != nil)
    #expect(try archive.bytes.starts(with: before))
    #expect(try chain(archive.reader()) == expected)
    #expect(try archive.reader().hasManifestsAlone())
    #expect(try SnapshotVerifier().verify(archive.reader(), .full).verdict == .intact)
    #expect(try isAccepted(archive.path.string))
    // What is named already is not named again.
    let named = try SnapshotHistory(of: archive.reader())
    var writer = try ArchiveWriter.open(
      FileStorage.open(archive.path), carHeader: archive.reader().carHeader)
    let again = try SnapshotHistory.nameFound(
      named.entries.map { ChainLink($0.cid, isVouched: $0.isVouched) },
      in: SourceArchive(archive.reader(), name: "a"), with: &writer)
    #expect(again == nil)
    _ = consume writer
    // Forgetting, compacting and merging keep the mark.
    _ = try RetentionPolicy(last: 4).prune(
      FileStorage.open(archive.path), name: "a")
    #expect(try chain(archive.reader()) == Array(expected.dropFirst()))
    #expect(try ArchiveCopier().compact(archive.path).isReplaced)
    #expect(try chain(archive.reader()) == Array(expected.dropFirst()))
    let target = FilePath(archive.folder.file("merged.car.zst"))
    let report = try ArchiveCopier().merge(
      [1, 2].map { try SourceArchive(archive.reader(), name: "\($0)") },
      to: AtomicFile(target, replacing: false))
    #expect(report.sharedCount == 4)
    #expect(try Set(chain(ArchiveReader(path: target))) == Set(expected.dropFirst()))
  }

  @Test func `are in the new archive of a damaged one, below the newest that a footer leads to`()
    throws
  {
    for (found, expected) in [
      ([1, 3], ["1", "2?", "3", "4?", "5"]), ([4], ["1", "2", "3", "5?", "4"]),
      ([0, 1, 2, 3, 4], ["1?", "2?", "3?", "4?", "5?"]),
    ] as [(Set<Int>, [String])] {
      let (archive, manifests) = try archive(without: found.count == 5 ? [] : found)
      let path = FilePath(archive.folder.file("salvaged.car.zst"))
      let report = try ArchiveCopier().salvage(
        archive.reader(), links(manifests, unvouched: found),
        into: FileStorage.openOrCreate(path), by: Self.options.provenance)
      let reader = try ArchiveReader(path: path)
      #expect(report.isWhole && report.snapshots.count == 5)
      #expect(report.snapshots.count { !$0.isVouched } == found.count)
      #expect(try chain(reader) == expected)
      #expect(try SnapshotVerifier().verify(reader, .full).verdict == .intact)
    }
  }
}
