import ATProtocol
import Archive
import ArchiveTestSupport
import Extraction
import Files
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `Extracting` {
  private static let image = SampleFile.png("an image")
  private static let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"

  /// The names of files without what extraction notes for itself.
  private static func extracted(_ names: [String]) -> [String] {
    names.filter { !$0.hasSuffix("carpack-extracted.sha256") }
  }

  private func extract(
    _ selection: Selection, of snapshot: ArchivedSnapshot, into folder: TemporaryFolder,
    overwriting: Bool = false
  ) throws -> SnapshotExtractor.Report {
    try SnapshotExtractor.extract(
      selection, of: snapshot,
      into: OutputFolder(folder.file("out"), overwriting: overwriting))
  }

  @Test func `reports blobs in the order of the records, whatever their order in the archive`()
    throws
  {
    var repository = try TestRepository(posts: 3)
    var (missing, mistyped): ([String], [String]) = ([], [])
    var blobs: [String: [UInt8]] = [:]
    for number in 0..<40 {
      // Some have no bytes, some are images of another type, and some are not small.
      let length = number % 5 == 3 ? 70_000 : 20
      let text = [0xff, 0xd8, 0xff, 0xe0] + [UInt8](repeating: UInt8(number), count: length)
      let bytes = number % 5 == 0 ? SampleFile.png("\(number)") : text
      let cid = CID.blob(bytes)
      try repository.add("a.b.c/\(number + 100)", blob: cid)
      if number % 5 == 1 {
        missing.append("\(cid)")
      } else {
        blobs["\(cid)"] = bytes
        if number % 5 != 0 { mistyped.append("\(cid)") }
      }
    }
    let packed = try Packed(car: try repository.car(), blobs: blobs)
    let snapshot = try packed.snapshot
    let report = try extract(.all, of: snapshot, into: packed.folder)
    #expect(report.missing == missing)
    #expect(report.mistyped.map { String($0.prefix { $0 != ":" }) } == mistyped)
    #expect(report.tally.written == blobs.count + 43 + 2)
    for (name, bytes) in blobs {
      let file = try #require(
        packed.folder.names(under: "out/\(Self.did)/blobs").first { $0.hasPrefix(name) })
      #expect(try packed.folder.read("out/\(Self.did)/blobs/\(file)") == bytes)
    }
    let cids = try blobs.keys.map { text throws in try CID(text) } + [.blob([1]), .blob([2])]
    #expect(try snapshot.states(of: cids) == cids.map { snapshot.state(of: $0) })
    // Each is looked for by itself where something is damaged.
    var damaged = try packed.bytes
    for place in stride(from: 300, to: damaged.count / 2, by: 100) { damaged[place] ^= 0xff }
    try packed.folder.write("a.car.zst", damaged)
    let left = try packed.snapshot
    #expect(try left.states(of: cids) == cids.map { left.state(of: $0) })
  }

  @Test func `everything gives the layout that people know, and the same when packed again`() throws
  {
    var repository = try TestRepository(posts: 3)
    try repository.add("a.b.c/image", blob: .blob(Self.image))
    repository.add("a.b.c/bytes", bytes: [0xff])
    var facts = AccountFacts()
    facts.handle = try Handle("alice.test")
    facts.plcLog = Array("[]".utf8)
    let packed = try Packed(
      car: try repository.car(), blobs: ["x": Self.image, "note": [1, 2, 3]], extras: true,
      facts: facts)
    let report = try extract(.all, of: packed.snapshot, into: packed.folder)
    let account = "out/\(Self.did)"
    #expect(report.damaged.isEmpty && report.refused.isEmpty && report.missing.isEmpty)
    #expect(
      Self.extracted(packed.folder.names(under: account))
        == [
          "alice.test-3lscuqc52or2x.car", "backup-metadata.json",
          "blobs/\(CID.blob(Self.image)).png", "blobs/\(CID.blob([1, 2, 3])).bin",
          "plc-audit-log.json", "records/a.b.c/bytes.cbor", "records/a.b.c/image.json",
          "records/app.bsky.feed.post/3k1000000.json", "records/app.bsky.feed.post/3k1000001.json",
          "records/app.bsky.feed.post/3k1000002.json",
        ].sorted())
    #expect(try packed.folder.read("\(account)/alice.test-3lscuqc52or2x.car") == packed.car)
    #expect(try packed.folder.read("\(account)/blobs/\(CID.blob(Self.image)).png") == Self.image)
    #expect(try packed.folder.read("\(account)/records/a.b.c/bytes.cbor") == [0xff])

    let second = try extract(.all, of: packed.snapshot, into: packed.folder)
    #expect(second.tally.written == 0)
    #expect(second.tally.alreadyThere == report.tally.written)

    let input = try PackInput(packed.folder.file("out"), blobFolders: [])
    #expect(input.facts.handle?.text == "alice.test")
    let again = try Packed(
      car: input.car.withBytes { $0.array })
    #expect(again.report.snapshot.car == packed.report.snapshot.car)
  }

  @Test func `a file that differs is reported, and nothing is written`() throws {
    let packed = try Packed(car: try TestRepository(posts: 3).car())
    let name = "out/\(Self.did)/records/app.bsky.feed.post/3k1000001.json"
    try packed.folder.write(name, [1])
    let report = try extract(.all, of: packed.snapshot, into: packed.folder)
    #expect(report.inTheWay == [packed.folder.file(name)])
    #expect(report.inTheWayCount == 1)
    #expect(report.tally.written == 0)
    #expect(packed.folder.names(under: "out") == [String(name.dropFirst(4))])
    #expect(try packed.folder.read(name) == [1])
    _ = try extract(.all, of: packed.snapshot, into: packed.folder, overwriting: true)
    #expect(try packed.folder.read(name).count > 1)
  }

  @Test(arguments: [
    ("../../x", "%2E./%2E.%2Fx"), ("/etc/x", "%/etc%2Fx"),
    ("a.b.c/../../../x", "a.b.c/%2E.%2F..%2F..%2Fx"),
    ("a.b.c/..", "a.b.c/%2E."), ("a.b.c/.", "a.b.c/%2E"), ("a.b.c/x\0y", "a.b.c/x%00y"),
    ("a.b.c/x/y", "a.b.c/x%2Fy"), ("../x", "%2E./x"), ("a.b.c/", "a.b.c/%"), ("..", "%-/%2E."),
    ("a.b.c/x y", "a.b.c/x%20y"), ("..../x", "%2E.../x"), ("a.b.c/\u{1b}[2J", "a.b.c/%1B%5B2J"),
    ("./x", "%2E/x"), ("a.b.c/%2F", "a.b.c/%252F"), ("polka.post/3k2a", "polka.post/3k2a"),
    ("a.b.c/.htaccess", "a.b.c/%2Ehtaccess"), ("a.b.c/\u{e9}", "a.b.c/%C3%A9"),
  ])
  func `a record with any key gets a name that leads nowhere else and says what the key was`(
    key: String, name: String
  ) throws {
    let folder = try TemporaryFolder()
    var repository = try TestRepository(posts: 2)
    repository.add(key, bytes: [0xa0])
    let path = try handMadeArchive(in: folder, repository)
    let snapshot = try ArchivedSnapshot.newest(in: ArchiveReader(path: path))
    let report = try extract(.all, of: snapshot, into: folder)
    #expect(report.refused.isEmpty && report.damaged.isEmpty)
    #expect(
      Self.extracted(folder.names())
        == [
          "made.car.zst", "out/\(Self.did)/\(Self.did)-3lscuqc52or2x.car",
          "out/\(Self.did)/backup-metadata.json",
          "out/\(Self.did)/records/app.bsky.feed.post/3k1000000.json",
          "out/\(Self.did)/records/app.bsky.feed.post/3k1000001.json",
          "out/\(Self.did)/records/\(name).json",
        ].sorted())
    #expect(try folder.read("out/\(Self.did)/records/\(name).json") == Array("{}\n".utf8))
    // A tree may have keys whose first part is not an NSID, as far as its own rules go.
    let isLegalInTree = ["..../x", "polka.post/3k2a", "a.b.c/.htaccess"].contains(key)
    let verdict = try SnapshotVerifier().verify(snapshot.reader, .full).verdict
    #expect(verdict == (isLegalInTree ? .intact : .damaged))
  }

  @Test func `names that no file system can hold get others, and come back`() throws {
    var repository = TestRepository()
    let collection =
      "abc." + String(repeating: "bcdefghij.", count: 25) + String(repeating: "n", count: 63)
    #expect(collection.utf8.count == 317)
    let keys = ["a", "b"].map { String(repeating: "k", count: 511) + $0 }
    for key in keys { try repository.add("\(collection)/\(key)", ["key": .string(key)]) }
    let packed = try Packed(car: try repository.car())
    let report = try extract(.all, of: packed.snapshot, into: packed.folder)
    #expect(report.refused.isEmpty && report.inTheWay.isEmpty)
    for key in keys {
      let name =
        "out/\(Self.did)/records/\(FileNaming.name(collection))/\(FileNaming.name(key, ending: ".json"))"
      #expect(String(decoding: try packed.folder.read(name), as: UTF8.self).contains(key))
    }
  }

  @Test func `single things, and what is not there`() throws {
    var repository = try TestRepository(posts: 3)
    try repository.add("a.b.c/image", blob: .blob(Self.image))
    let packed = try Packed(car: try repository.car(), blobs: ["x": Self.image])
    var selection = Selection()
    selection.items = [.cid(.blob(Self.image)), .record("app.bsky.feed.post/3k1000001")]
    let report = try extract(selection, of: packed.snapshot, into: packed.folder)
    #expect(report.tally.written == 2)
    for item in [
      Selection.Item.cid(.blob([9])), .record("app.bsky.feed.post/none"), .record("a.b.c/none"),
    ] {
      selection.items = [item]
      #expect(throws: BackupError.self) {
        _ = try extract(selection, of: packed.snapshot, into: packed.folder)
      }
    }
    for text in ["", "at://", "a/b/c"] {
      #expect(throws: BackupError.malformedSelector(text)) { try Selector(text) }
    }
  }

  @Test func `records of a tree whose nodes are not all there says so`() throws {
    var repository = try TestRepository(posts: 200)
    let nodes = try repository.blocks().dropFirst().prefix { block in
      !repository.records.values.contains(block.bytes)
    }
    // The first node that is complete is a leaf of the tree.
    repository.omitted = [try #require(nodes.first).cid]
    let packed = try Packed(car: try repository.car())
    var selection = Selection()
    selection.records = true
    let report = try extract(selection, of: packed.snapshot, into: packed.folder)
    #expect(!report.missingNodes.isEmpty)
    #expect(report.damaged.isEmpty)
    #expect(report.tally.written > 0)
  }

  @Test func `metadata goes on when a document is lost`() throws {
    let folder = try TemporaryFolder()
    let log = Array("[]".utf8)
    let path = try handMadeArchive(
      in: folder, TestRepository(posts: 1), further: [Block(cid: .blob(log), bytes: log)]
    ) { snapshot in
      snapshot.didDocument = .blob([1, 2, 3])
      snapshot.plcLog = .blob(log)
    }
    var selection = Selection()
    selection.metadata = true
    let snapshot = try ArchivedSnapshot.newest(in: ArchiveReader(path: path))
    let report = try extract(selection, of: snapshot, into: folder)
    #expect(report.damaged.map(\.what) == ["did-document.json"])
    #expect(
      Self.extracted(folder.names(under: "out/\(Self.did)"))
        == ["backup-metadata.json", "plc-audit-log.json"])
  }
}
