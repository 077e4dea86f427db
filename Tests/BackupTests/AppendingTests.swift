import ATProtocol
import Archive
import Files
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing

/// An archive that snapshots are packed into one after another, and what each of them has to give
/// back.
struct Series {
  let folder: TemporaryFolder
  let path: FilePath
  private(set) var cars: [CID: [UInt8]] = [:]
  private(set) var heads: [CID] = []

  init() throws {
    folder = try TemporaryFolder()
    path = FilePath(folder.file("a.car.zst"))
  }

  @discardableResult
  mutating func pack(
    _ car: [UInt8], blobs: [String: [UInt8]] = [:],
    change: (inout RepositoryPacker.Options) -> Void = { _ in }
  ) throws -> RepositoryPacker.Report {
    try folder.write("repo.car", car)
    for (name, content) in blobs { try folder.write("blobs/\(name)", content) }
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:\(10 + heads.count)Z", hostSystem: "Linux",
      milliseconds: { 0 })
    options.startsOver = !AtomicFile.isTaken(path)
    change(&options)
    let input = try InputFile(folder.file("repo.car"))
    let folders = blobs.isEmpty ? [] : [BlobFolder(folder.file("blobs"))]
    let report = try RepositoryPacker(options).pack(
      input, folders: folders, into: FileStorage.openOrCreate(path))
    if let head = report.generation.head?.cid, !report.isUnchanged {
      heads.append(head)
      cars[head] = car
    }
    return report
  }

  var bytes: [UInt8] { get throws { try folder.read("a.car.zst") } }
  var reader: ArchiveReader { get throws { try ArchiveReader(path: path) } }

  /// Every snapshot gives its CAR back bit for bit, and the file verifies.
  func check(at location: SourceLocation = #_sourceLocation) throws {
    let reader = try reader
    for head in heads {
      let restored = try RestoredRepository(ArchivedSnapshot(head, in: reader))
      #expect(restored.isExact, sourceLocation: location)
      let car = restored.withBytes { $0.array }
      #expect(car == cars[head], sourceLocation: location)
    }
    let found = try reader.verify()
    #expect(found.findings == [], sourceLocation: location)
    #expect(try ZstdProgram.accepts(path.string), sourceLocation: location)
  }
}

@Suite struct `Packing into an archive that is there` {
  @Test func `appends what is new, and every snapshot stays as it was`() throws {
    var series = try Series()
    var repository = try TestRepository(posts: 3000)
    try series.pack(repository.car())
    var last = try series.bytes
    for round in 0..<40 {
      repository.rev =
        "3lscuqc52o\(["r", "s", "t", "u"][round / 10])\(["2", "3", "4", "5", "6", "7", "a", "b", "c", "d"][round % 10])x"
      try repository.add(
        "app.bsky.feed.like/3l\(1_000_000 + round)", ["n": .integer(Int128(round))])
      try repository.add("app.bsky.actor.profile/self", ["round": .integer(Int128(round))])
      let report = try series.pack(repository.car())
      let bytes = try series.bytes
      #expect(bytes.starts(with: last))
      #expect(UInt64(bytes.count - last.count) == report.bytesAdded)
      #expect(report.bytesAdded < 8000)
      last = bytes
    }
    #expect(series.heads.count == 41)
    try series.check()
    // No chain of relative orders is longer than a reader follows.
    #expect(try series.reader.generation.number == 41)
  }

  @Test func `writes nothing if nothing is new`() throws {
    var series = try Series()
    let repository = try TestRepository(posts: 50)
    try series.pack(repository.car()) { $0.facts.pds = "https://pds.example" }
    let before = try series.bytes
    let again = try series.pack(repository.car())
    #expect(again.isUnchanged && again.bytesAdded == 0)
    #expect(try series.bytes == before)
    // Another server is news.
    let moved = try series.pack(repository.car()) { $0.facts.pds = "https://other.example" }
    #expect(!moved.isUnchanged)
    #expect(moved.bytesAdded < 1000)
    try series.check()
  }

  @Test func `keeps what is known of blobs and of the account`() throws {
    var series = try Series()
    let blobs = (0..<4).map { [UInt8](repeating: UInt8($0), count: 90_000 + $0) }
    let cids = blobs.map { CID(codec: .raw, hashing: $0.span) }
    var repository = TestRepository()
    for (number, cid) in cids.enumerated() {
      try repository.add("app.bsky.feed.post/3k\(number)", blob: cid, size: blobs[number].count)
    }
    try series.pack(
      repository.car(),
      blobs: ["\(cids[0])": blobs[0], "\(cids[1])": blobs[0], "extra": [1, 2, 3]]
    ) { options in
      options.keepsExtras = true
      options.facts.plcLog = Array("[]".utf8)
    }
    repository.rev = "3lscuqc52or3x"
    try repository.add("app.bsky.feed.post/4", ["text": .string("new")])
    let second = try series.pack(repository.car())
    #expect(second.snapshot.blobs.held == 1 && second.snapshot.blobs.extras == 1)
    #expect(second.snapshot.blobs.extrasBytes == 3)
    #expect(second.missing.map(\.reason) == [.mismatch, .notProvided, .notProvided])
    #expect(second.snapshot.plcLog != nil)
    let third = try series.pack(repository.car(), blobs: ["\(cids[1])": blobs[1]])
    #expect(third.snapshot.blobs.held == 2)
    #expect(third.missing.map(\.reason) == [.notProvided, .notProvided])
    try series.check()
  }

  @Test func `lets several accounts share their blobs`() throws {
    var series = try Series()
    let blob = [UInt8](repeating: 9, count: 200_000)
    let cid = CID(codec: .raw, hashing: blob.span)
    var alice = try TestRepository(posts: 100)
    try alice.add("app.bsky.feed.post/a", blob: cid)
    var bob = try TestRepository(posts: 100)
    bob.did = "did:plc:z72i7hdynmk6r22z27h6tvur"
    try bob.add("app.bsky.feed.post/b", blob: cid)
    try series.pack(alice.car(), blobs: ["x": blob])
    let second = try series.pack(bob.car())
    #expect(second.snapshot.blobs.held == 1 && second.missing == [])
    alice.rev = "3lscuqc52or3x"
    try alice.add("app.bsky.feed.post/c", ["text": .string("new")])
    let third = try series.pack(alice.car())
    // Between two snapshots of one account may be one of another.
    #expect(
      third.snapshot.car.base == nil
        || third.snapshot.car.base == series.heads[0])
    #expect(third.bytesAdded < 3000)
    try series.check()
  }

  @Test(.enabled(if: Corpus.isPresent, Comment(rawValue: Corpus.absence)))
  func `gives back every CAR of a real series`() throws {
    let folders = Corpus.files(under: "repos", suffix: "series.json")
    for folder in folders {
      var series = try Series()
      let parent = (folder as NSString).deletingLastPathComponent
      for car in Corpus.files(under: parent, suffix: ".car") {
        try series.pack(Corpus.bytes(car))
      }
      try series.check()
    }
  }

  @Test func `leaves alone what is no archive, or another's beginning`() throws {
    var series = try Series()
    let car = try TestRepository(posts: 5).car()
    try series.folder.write("a.car.zst", Array("something else".utf8))
    #expect(throws: ArchiveError(.notAnArchive)) { try series.pack(car) }
    #expect(try series.bytes == Array("something else".utf8))
    // Unless the file has not been announced.
    try series.pack(car) { $0.startsOver = true }
    try series.check()
  }

  @Test func `of a CAR that is written to meanwhile changes nothing`() throws {
    var series = try Series()
    var repository = try TestRepository(posts: 50)
    try series.pack(repository.car())
    let before = try series.bytes
    try repository.add("app.bsky.feed.like/1", ["n": .integer(1)])
    let car = try repository.car()
    let file = try series.folder.write("changing.car", car)
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    let path = series.path
    #expect(throws: BackupError.changedMeanwhile(file)) {
      try RepositoryPacker(options).pack(
        InputFile(file), folders: [], to: AtomicFile(path, replacing: true)
      ) { _ in
        // It has been inspected by now.
        do { try series.folder.write("changing.car", car + [0]) } catch { Issue.record(error) }
      }
    }
    #expect(try series.bytes == before)
  }

  @Test func `of a damaged CAR changes nothing`() throws {
    var series = try Series()
    var car = try TestRepository(posts: 50).car()
    try series.pack(car)
    let before = try series.bytes
    car[car.count - 5] ^= 1
    #expect(throws: (any Error).self) { try series.pack(car) }
    #expect(try series.bytes == before)
  }
}
