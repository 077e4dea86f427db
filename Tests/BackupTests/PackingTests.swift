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
internal import Verification

@Suite struct `Packing a repository` {
  private static let image = SampleFile.png("an image")
  private static let other = SampleFile.jpeg("another image")

  private func repository() throws -> TestRepository {
    var repository = try TestRepository(posts: 300)
    try repository.add("app.bsky.feed.post/image", blob: .blob(Self.image))
    try repository.add("app.bsky.feed.post/other", blob: .blob(Self.other), mimeType: "image/jpeg")
    return repository
  }

  @Test func `gives the CAR back bit for bit`() throws {
    for count in [0, 1, 2, 300] {
      let packed = try Packed(car: try TestRepository(posts: count).car())
      #expect(try packed.restoredCAR() == packed.car)
      #expect(packed.report.snapshot.counts.records == count)
      let verified = try packed.verify()
      #expect(verified.verdict == .intact)
      #expect(verified.damage == [])
      #expect(try packed.verify(.quick).verdict == .intact)
    }
  }

  @Test func `gives back a CAR with blocks in any order, and some of them twice`() throws {
    var random = SeededGenerator(printing: 0xbac0_0001)
    let repository = try repository()
    let blocks = try repository.blocks()
    for _ in 0..<10 {
      var order = (blocks + blocks.prefix(20)).shuffled(using: &random)
      order += order.suffix(10)
      var car: [UInt8] = []
      CARWriter.appendHeader(roots: [blocks[0].cid], to: &car)
      for block in order { CARWriter.appendSection(block.cid, block.bytes.span, to: &car) }
      let packed = try Packed(car: car)
      #expect(try packed.restoredCAR() == car)
      #expect(try packed.verify().damage == [])
    }
  }

  @Test func `puts a long order of blocks into pages`() throws {
    var random = SeededGenerator(printing: 0xbac0_0002)
    let repository = try TestRepository(posts: 3000)
    let blocks = try repository.blocks()
    var car: [UInt8] = []
    CARWriter.appendHeader(roots: [blocks[0].cid], to: &car)
    // Whatever comes first has the first ordinal, so an order needs repetition to be long.
    for block in blocks + blocks.shuffled(using: &random) {
      CARWriter.appendSection(block.cid, block.bytes.span, to: &car)
    }
    let packed = try Packed(car: car)
    guard packed.report.snapshot.car.runs == nil else {
      Issue.record("the order is in the manifest")
      return
    }
    #expect(!packed.report.snapshot.car.pages.isEmpty)
    #expect(try packed.restoredCAR() == car)
    #expect(try packed.verify().verdict == .intact)
  }

  @Test func `takes the inner CAR out of a CAR of version 2`() throws {
    let inner = try repository().car()
    var outer = CARVersion2.pragma + [UInt8](repeating: 0, count: 16)
    func append(_ number: Int) {
      for shift in 0..<8 { outer.append(UInt8(truncatingIfNeeded: number >> (8 * shift))) }
    }
    append(51)
    append(inner.count)
    append(0)
    let packed = try Packed(car: outer + inner)
    #expect(try packed.restoredCAR() == inner)
  }

  @Test func `keeps the ledger of blobs`() throws {
    let packed = try Packed(
      car: try repository().car(),
      blobs: ["deep/er/photo": Self.image, "note.txt": Array("nobody's".utf8)])
    #expect(packed.report.snapshot.blobs.referenced == 2)
    #expect(packed.report.snapshot.blobs.held == 1)
    #expect(packed.report.snapshot.blobs.heldBytes == UInt64(Self.image.count))
    #expect(packed.report.snapshot.blobs.missing == 1)
    #expect(packed.report.leftOutCount == 1)
    #expect(packed.report.missing.map(\.cid) == [.blob(Self.other)])
    let snapshot = try packed.snapshot
    // What was simply not given needs no entry.
    #expect(try snapshot.missingBlobs() == [])
    #expect(try snapshot.extras() == [])
    #expect(try packed.reader.body(of: .blob(Self.image)) == Self.image)
    let verified = try packed.verify()
    #expect(verified.verdict == .incomplete)
    #expect(verified.missingBlobs.map(\.cid) == [.blob(Self.other)])
    #expect(verified.missingBlobs.map(\.record) == ["app.bsky.feed.post/other"])
    #expect(try packed.verify(.quick).verdict == .incomplete)
  }

  @Test func `keeps what no record refers to only when asked`() throws {
    let note = Array("nobody's".utf8)
    let packed = try Packed(
      car: try repository().car(), blobs: ["a": Self.image, "b": Self.other, "c": note, "d": note],
      extras: true)
    #expect(packed.report.snapshot.blobs.extras == 1)
    #expect(packed.report.snapshot.blobs.extrasBytes == UInt64(note.count))
    #expect(packed.report.leftOutCount == 0)
    #expect(try packed.snapshot.extras() == [.blob(note)])
    #expect(try packed.reader.body(of: .blob(note)) == note)
    #expect(try packed.verify().verdict == .intact)
  }

  @Test func `refuses a file whose name is another's CID, and names it`() throws {
    let packed = try Packed(
      car: try repository().car(),
      blobs: ["\(CID.blob(Self.image)).png": Self.other + [1], "x": Self.other])
    #expect(
      packed.report.refused.map(\.path) == [
        packed.folder.file("blobs/\(CID.blob(Self.image)).png")
      ])
    #expect(
      packed.report.missing == [
        .init(cid: .blob(Self.image), reason: .mismatch, size: 100)
      ])
    #expect(try packed.snapshot.missingBlobs() == Array(packed.report.missing))
    #expect(try packed.reader.body(of: .blob(Self.image)) == nil)
    #expect(try packed.reader.body(of: .blob(Self.other)) == Self.other)
    #expect(try packed.verify().verdict == .incomplete)
  }

  @Test func `names a second file of a CID that lies, though the first was right`() throws {
    let packed = try Packed(
      car: try repository().car(),
      blobs: [
        "1/\(CID.blob(Self.image)).png": Self.image, "2/\(CID.blob(Self.image)).png": [0],
        "x": Self.other,
      ])
    #expect(packed.report.refused.count == 1)
    #expect(packed.report.missing == [])
    #expect(try packed.verify().verdict == .intact)
  }

  @Test func `takes an empty blob, a large one, and one that is an archive itself`() throws {
    var random = SeededGenerator(printing: 0xbac0_0003)
    let inner = try Packed(car: try TestRepository(posts: 20).car())
    let blobs = [[], random.bytes(5 << 20), random.text(300_000), try inner.bytes]
    var repository = TestRepository()
    for (number, blob) in blobs.enumerated() {
      try repository.add("a.b.c/\(number)", blob: .blob(blob), mimeType: "*/*")
    }
    let packed = try Packed(
      car: try repository.car(),
      blobs: Dictionary(uniqueKeysWithValues: blobs.enumerated().map { ("\($0)", $1) }))
    #expect(packed.report.missing == [])
    for blob in blobs { #expect(try packed.reader.body(of: .blob(blob)) == blob) }
    #expect(try packed.verify().verdict == .intact)
  }

  @Test func `counts the bytes of a blob that the CAR carries, and not those a record claims`()
    throws
  {
    var repository = TestRepository()
    try repository.add("a.b.c/1", blob: .blob(Self.image), size: 1 << 50)
    repository.strays = [Block(cid: .blob(Self.image), bytes: Self.image)]
    let packed = try Packed(car: try repository.car())
    #expect(packed.report.snapshot.blobs.held == 1)
    #expect(packed.report.snapshot.blobs.heldBytes == UInt64(Self.image.count))
    #expect(try packed.verify().verdict == .intact)
    #expect(try packed.restoredCAR() == packed.car)
  }

  @Test func `says that an incomplete CAR is incomplete, and gives it back all the same`() throws {
    var repository = try repository()
    let lost = try #require(repository.cid(of: "app.bsky.feed.post/image"))
    repository.omitted = [lost]
    let packed = try Packed(car: try repository.car())
    #expect(!packed.report.snapshot.isComplete)
    #expect(try packed.restoredCAR() == packed.car)
    let verified = try packed.verify()
    #expect(verified.verdict == .incomplete)
    #expect(verified.damage == [])
  }

  @Test func `keeps records that are no records`() throws {
    var repository = try repository()
    repository.add("a.b.c/bytes", bytes: [0xff, 0x00])
    repository.add("a.b.c/float", bytes: try DAGCBOREncoder.encode(.map(["x": .float(1.5)])))
    let packed = try Packed(car: try repository.car())
    #expect(try packed.restoredCAR() == packed.car)
    let verified = try packed.verify()
    #expect(verified.verdict == .incomplete)  // For want of the two images.
    #expect(
      verified.recordWarnings.map(\.record).sorted() == ["a.b.c/bytes", "a.b.c/float"])
  }

  @Test func `makes no file for a CAR that is malformed`() throws {
    let car = try repository().car()
    var flipped = car
    flipped[car.count - 5] ^= 1
    var illegal = try repository()
    illegal.add("../../x", bytes: [0xa0])
    var unsigned = try repository()
    unsigned.signature = [UInt8](repeating: 1, count: 71)
    for car in [Array(car.dropLast()), flipped, [], [0], try illegal.car(), try unsigned.car()] {
      let folder = try TemporaryFolder()
      let input = try InputFile(folder.write("repo.car", car))
      let options = RepositoryPacker.Options(
        tool: "", createdAt: "", hostSystem: "", milliseconds: { 0 })
      var wasMade = false
      #expect(throws: (any Error).self) {
        let target = try AtomicFile(FilePath(folder.file("a.car.zst")), replacing: false)
        _ = try RepositoryPacker(options).pack(input, folders: [], to: target) { _ in
          wasMade = true
        }
      }
      #expect(!wasMade)
    }
  }

  @Test func `takes handle and server from the DID document, and refuses somebody else's`() throws {
    let repository = try repository()
    var facts = AccountFacts()
    facts.didDocument = Array(
      """
      {"id": "\(repository.did)", "alsoKnownAs": ["https://x", "at://not a handle", "at://alice.test"],
       "service": [{"id": "#other", "serviceEndpoint": {"a": 1}},
                   {"id": "#atproto_pds", "serviceEndpoint": "https://pds.test"}]}
      """.utf8)
    facts.plcLog = Array("[]".utf8)
    let packed = try Packed(car: try repository.car(), facts: facts)
    #expect(packed.report.snapshot.handle?.text == "alice.test")
    #expect(packed.report.snapshot.pds == "https://pds.test")
    let document = try #require(packed.report.snapshot.didDocument)
    #expect(try packed.reader.body(of: document) == facts.didDocument)
    let log = try #require(packed.report.snapshot.plcLog)
    #expect(try packed.reader.body(of: log) == facts.plcLog)
    facts.didDocument = Array(#"{"id": "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"}"#.utf8)
    #expect(
      throws: BackupError.otherAccount("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", expected: repository.did)
    ) {
      _ = try Packed(car: try repository.car(), facts: facts)
    }
    for text in ["", "{", "[]", "{}", String(repeating: "[", count: 100_000)] {
      facts.didDocument = Array(text.utf8)
      #expect(throws: BackupError.self) { _ = try Packed(car: try repository.car(), facts: facts) }
    }
  }
}
