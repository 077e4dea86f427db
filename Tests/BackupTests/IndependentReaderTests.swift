import ATProtocol
import Archive
import Foundation
import IPLD
internal import Packing
internal import Snapshots
import SystemPackage
import TestSupport
import Testing

@Suite(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
struct `A reader that knows the document alone` {
  private static let image = SampleFile.png("an image")

  private func sample() throws -> Packed {
    var random = SeededGenerator(printing: 0x9747_0001)
    var repository = try TestRepository(posts: 200)
    let large = random.bytes(5 << 20)
    try repository.add("a.b.c/image", blob: .blob(Self.image))
    try repository.add("a.b.c/large", blob: .blob(large))
    try repository.add("a.b.c/lost", blob: .blob([1]))
    return try Packed(
      car: try repository.car(),
      blobs: [
        "1": Self.image, "2": large, "3": Array("extra".utf8), "\(CID.blob([1])).png": [2],
      ], extras: true)
  }

  /// Requires that the short reader of the documents writes every snapshot as it is.
  private func requireWhole(_ path: FilePath, in folder: TemporaryFolder) throws {
    let reader = try ArchiveReader(path: path)
    for (index, entry) in try SnapshotHistory(of: reader).entries.enumerated() {
      let out = "out-\(index)"
      let result = try IndependentReader.write(
        path.string, into: folder.file(out), snapshot: index + 1)
      #expect(result.status == 0)
      let archived = try ArchivedSnapshot(entry.cid, in: reader)
      #expect(
        try folder.read("\(out)/repo.car") == RestoredRepository(archived).withBytes { $0.array })
      let names = folder.names(under: out)
      #expect(
        names.count { $0.contains("records/") && $0.hasSuffix(".json") }
          == archived.snapshot.counts.records)
      let blobs = names.filter { $0.contains("blobs/") }
      #expect(blobs.count == archived.snapshot.blobs.held)
      for name in blobs {
        let content = try folder.read("\(out)/\(name)")
        #expect(name.hasSuffix("/\(CID.blob(content))"))
      }
    }
  }

  @Test(arguments: ["note", "one", "several", "smallest", "unknown-optional"])
  func `of 300 lines reads every archive of the project`(_ name: String) throws {
    try requireWhole(
      FilePath("\(Command.packageRoot)/Fixtures/archives/\(name).car.zst"), in: TemporaryFolder())
  }

  @Test func `of 300 lines reads large blobs, and orders that are relative to others`() throws {
    let packed = try sample()
    try requireWhole(packed.path, in: packed.folder)
    var series = try Series()
    var repository = try TestRepository(posts: 300)
    try series.pack(repository.car())
    for number in 0..<3 {
      try repository.add("app.bsky.feed.post/4k\(number)", ["text": .string("\(number)")])
      try series.pack(repository.car())
    }
    try requireWhole(series.path, in: series.folder)
  }

  @Test func `reads everything that is in an archive`() throws {
    let packed = try sample()
    let path = packed.path.string
    let list = try IndependentReader.run(["list", path])
    #expect(list.status == 0)
    let lines = String(decoding: list.output, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == Int(packed.report.generation.sectionCount))
    #expect(lines.contains { $0.contains("\(CID.blob(Self.image)) \(Self.image.count)") })
    for name in ["1", "2", "3"] {
      let content = try packed.folder.read("blobs/\(name)")
      let blob = try IndependentReader.run(["blob", path, "\(CID.blob(content))"])
      #expect(blob.status == 0)
      #expect(blob.output == content)
    }
    let car = packed.folder.file("again.car")
    #expect(try IndependentReader.run(["car", path, car]).status == 0)
    #expect(try packed.folder.read("again.car") == packed.car)
    #expect(try IndependentReader.run(["verify", path]).status == 0)
    #expect(
      String(decoding: try IndependentReader.run(["extras", path]).output, as: UTF8.self)
        == "\(CID.blob(Array("extra".utf8)))\n")
    let missing = String(
      decoding: try IndependentReader.run(["missing", path]).output, as: UTF8.self)
    #expect(missing.contains("\(CID.blob([1]))") && missing.contains("mismatch"))
    let snapshot = try IndependentReader.run(["snapshot", path])
    #expect(snapshot.status == 0)
    let fields = try #require(
      try JSONSerialization.jsonObject(with: Data(snapshot.output)) as? [String: Any])
    #expect(fields["did"] as? String == packed.report.snapshot.did.text)
    #expect((fields["counts"] as? [String: Int])?["records"] == 203)
    #expect((fields["blobs"] as? [String: Int])?["held"] == 2)
    #expect((fields["commit"] as? [String: String])?["$link"] == "\(packed.report.snapshot.commit)")
    #expect((fields["car"] as? [String: Any])?["bytes"] as? Int == packed.car.count)
  }

  @Test func `reads every snapshot of an archive that was appended to, an interrupted tail or not`()
    throws
  {
    var random = SeededGenerator(printing: 0x9747_0002)
    var series = try Series()
    var repository = try TestRepository(posts: 300)
    for round in 0..<15 {
      repository.rev =
        "3lscuqc52or\(["2", "3", "4", "5", "6", "7"][round / 3])\(["x", "y", "z"][round % 3])"
      try repository.add(
        "app.bsky.feed.like/3l\(random.next() % 1_000_000)", ["n": .integer(Int128(round))])
      try series.pack(repository.car())
    }
    try series.check()
    let path = series.path.string
    for tail in [[], random.bytes(3000), Array(try series.bytes.dropFirst(300).prefix(9000))] {
      let file = try series.folder.write("tail.car.zst", series.bytes + tail)
      let log = try IndependentReader.run(["log", file])
      #expect(log.status == (tail.isEmpty ? 0 : 1))
      let lines = String(decoding: log.output, as: UTF8.self).split(separator: "\n")
      #expect(lines.map { $0.prefix { $0 != " " } } == series.heads.reversed().map { "\($0)"[...] })
      // In front of a tail, some of them.
      for (back, head) in series.heads.reversed().enumerated() where tail.isEmpty || back % 5 == 0 {
        let car = series.folder.file("back.car")
        _ = try IndependentReader.run(["car", file, car, "--back", "\(back)"])
        #expect(try series.folder.read("back.car") == series.cars[head])
      }
    }
    #expect(try IndependentReader.run(["verify", path]).status == 0)
  }

  @Test func `sees that an archive is damaged`() throws {
    let packed = try sample()
    let bytes = try packed.bytes
    for place in [20, 500, bytes.count / 2, bytes.count - 700, bytes.count - 100] {
      var damaged = bytes
      damaged[place] ^= 0xff
      let path = try packed.folder.write("damaged.car.zst", damaged)
      #expect(try IndependentReader.run(["verify", path]).status != 0, "byte \(place)")
    }
    let cut = try packed.folder.write("cut.car.zst", Array(bytes.dropLast(10)))
    #expect(try IndependentReader.run(["verify", cut]).status != 0)
  }
}
