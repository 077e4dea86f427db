import ATProtocol
import Archive
import ArchiveTestSupport
import Extraction
import Files
import IPLD
import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `The verdict on a forged archive` {
  private static let image = SampleFile.png("an image")

  private func verify(
    _ repository: TestRepository, further: [Block] = [],
    change: (inout Snapshot) -> Void = { _ in }
  ) throws -> SnapshotVerifier.Report {
    let folder = try TemporaryFolder()
    let path = try handMadeArchive(in: folder, repository, further: further, change: change)
    let terms = ProofTerms(now: UnixTime(microseconds: 0), key: nil)
    return try SnapshotVerifier(judging: terms).verify(ArchiveReader(path: path), .full)
  }

  @Test func `is that nothing is wrong when nothing is`() throws {
    #expect(try verify(TestRepository(posts: 20)).verdict == .intact)
  }

  @Test func `finds figures that are not the repository's`() throws {
    let repository = try TestRepository(posts: 20)
    for change in [
      { $0.counts.records += 1 }, { $0.isComplete = false }, { $0.blobs.referenced = 1 },
      { $0.car.byteCount += 1 }, { $0.car.sha256 = SHA256.digest(of: [9].span) },
      { $0.car.sectionCount += 1 }, { $0.car.runs = [] }, { $0.rev = nil },
      { $0.commit = .blob([1]) }, { $0.car.header += [0] }, { $0.car.header = [] },
      { $0.car.runs = [0, 5, 0, 5] }, { $0.car.runs = [0xff] },
      { ($0.car.runs, $0.car.pages) = (nil, [.blob([1])]) }, { $0.extrasPages = [.blob([1])] },
      { $0.missingPages = [.blob([1])] }, { $0.plcLog = .blob([1]) },
      { $0.didDocument = .blob([1]) }, { $0.car.byteCount = 1 << 62 },
      { $0.car.sectionCount = 1 << 62 },
    ] as [(inout Snapshot) -> Void] {
      let report = try verify(repository, change: change)
      #expect(report.verdict == .damaged)
      #expect(!report.damage.isEmpty)
    }
  }

  @Test func `finds a blob that is said to be here and is not`() throws {
    var repository = TestRepository()
    try repository.add("a.b.c/1", blob: .blob(Self.image))
    let report = try verify(repository) {
      $0.blobs.referenced = 1
      $0.blobs.held = 1
    }
    #expect(report.verdict == .damaged)
    #expect(report.missingBlobs.map(\.cid) == [.blob(Self.image)])
  }

  @Test func `finds a tree that breaks the rules`() throws {
    var repository = try TestRepository(posts: 5)
    repository.add("../../x", bytes: [0xa0])
    #expect(try verify(repository).verdict == .damaged)
  }

  @Test(arguments: [0, 63, 65, 71])
  func `finds a signature that no key can have made`(length: Int) throws {
    var repository = try TestRepository(posts: 5)
    repository.signature = [UInt8](repeating: 1, count: length)
    let inspection = try RepositoryInspection(car: repository.car())
    #expect(!inspection.isWellFormed && inspection.recordCount == 5)
    let report = try verify(repository)
    #expect(report.verdict == .damaged)
    let levels = try #require(report.snapshots.first?.levels)
    #expect(levels[.wellFormed].isHeld == false && levels[.signed].isHeld == false)
    #expect(levels[.signed].why.contains("has \(length) bytes"))
    #expect(levels[.wellFormed].why == levels[.signed].why)
  }

  @Test func `refuses an order of pages that all are the same page again and again`() throws {
    // A megabyte of runs, named 10,000 times: ten gigabytes for a reader that reads them all first.
    var page: [UInt8] = []
    while page.count < 1 << 20 { page += [0, 1, 1, 1] }
    let block = Block(cid: .blob(page), bytes: page)
    let report = try verify(TestRepository(posts: 5), further: [block]) {
      ($0.car.runs, $0.car.pages) = (nil, Array(repeating: block.cid, count: 10_000))
      $0.car.sectionCount = 1 << 62
      $0.car.byteCount = 1 << 62
    }
    #expect(report.verdict == .damaged)
  }

  /// An archive of a commit whose tree is one block.
  private func archive(in folder: TemporaryFolder, withTree name: CID, _ node: [UInt8]) throws
    -> ArchiveReader
  {
    let commit = try DAGCBOREncoder.encode(
      .map([
        "did": .string("did:plc:ewvi7nxzyoun6zhxrhs64oiz"), "version": .integer(3),
        "rev": .string("3lscuqc52or2x"), "prev": .null, "data": .link(name),
        "sig": .bytes([UInt8](repeating: 1, count: 64)),
      ]))
    let root = CID(codec: .dagCBOR, hashing: commit.span)
    let path = FilePath(folder.file("forged.car.zst"))
    var header: [UInt8] = []
    CARWriter.appendHeader(roots: [root], to: &header)
    var car = header
    CARWriter.appendSection(root, commit.span, to: &car)
    CARWriter.appendSection(name, node.span, to: &car)
    var writer = try ArchiveWriter.open(try FileStorage.create(path), carHeader: header)
    try writer.append(root, commit.span)
    try writer.append(name, node.span)
    var snapshot = try Snapshot.example()
    (snapshot.commit, snapshot.previous, snapshot.privateData) = (root, nil, nil)
    (snapshot.extrasPages, snapshot.missingPages) = ([], [])
    (snapshot.didDocument, snapshot.plcLog) = (nil, nil)
    (snapshot.blobs, snapshot.standing) = (Snapshot.BlobCounts(), Standing())
    (snapshot.unreadable, snapshot.isUnvouched) = (UnreadableRecords(), false)
    snapshot.describe(car, header: header.count, sectionCount: 2, order: [0, 2])
    let bytes = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    try writer.append(cid, bytes.span)
    _ = try writer.commit(manifest: cid)
    return try ArchiveReader(path: path)
  }

  @Test func `is that records are lost where a node of the tree is none, in every look`() throws {
    let node = try DAGCBOREncoder.encode(.map(["x": .integer(1)]))
    let folder = try TemporaryFolder()
    let reader = try archive(in: folder, withTree: CID(codec: .dagCBOR, hashing: node.span), node)
    #expect(try SnapshotVerifier().verify(reader, .full).verdict == .damaged)
    let newest = try ArchivedSnapshot.newest(in: reader)
    let contents = try SnapshotBlocks(newest).contents()
    #expect(contents.tree.treeProblemCount == 1)
    #expect(contents.flaw?.contains("is not a tree node") == true)
    #expect(throws: BackupError.self) { try newest.missingNow() }
    var (records, car) = (Selection(), Selection())
    (records.records, car.car) = (true, true)
    for (selection, isDamaged) in [(Selection.all, true), (records, true), (car, false)] {
      let out = try OutputFolder(folder.file("out"), overwriting: true)
      let report = try SnapshotExtractor.extract(selection, of: newest, into: out)
      #expect(report.damaged.contains { $0.what == "records" } == isDamaged)
    }
  }

  @Test func `survives a tree that leads back to itself under a hash that nobody can check`() throws
  {
    // CIDs of a hash function that is unknown here need not match, so they can close a circle.
    let name = CID(
      codec: .dagCBOR,
      multihash: Multihash(
        function: HashFunction(rawValue: 0x1e), digest: [UInt8](repeating: 7, count: 32)))
    let node = try DAGCBOREncoder.encode(.map(["e": .array([]), "l": .link(name)]))
    let folder = try TemporaryFolder()
    let reader = try archive(in: folder, withTree: name, node)
    #expect(try SnapshotVerifier().verify(reader, .full).verdict == .damaged)
    #expect(throws: (any Error).self) { try ArchivedSnapshot.newest(in: reader).record("a.b.c/1") }
  }
}
