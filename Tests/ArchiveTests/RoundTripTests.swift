import Archive
import IPLD
import SystemPackage
import TestSupport
import Testing

@Suite struct `Writing an archive and reading it` {
  @Test func `gives every section back by CID, by number and in a stream`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x5eed_0001)
    var bodies = (0..<3000).map { _ in random.text(Int.random(in: 0...700, using: &random)) }
    bodies += (0..<20).map { _ in random.bytes(Int.random(in: 1...70_000, using: &random)) }
    bodies += [
      random.bytes(65_535), random.bytes(65_536), random.bytes(1 << 22),
      random.bytes(1 << 22 + 1), random.bytes(9_000_000), random.text(9_000_000),
    ]
    var seen = Set<CID>()
    bodies = bodies.filter { seen.insert(CID(codec: .raw, hashing: $0.span)).inserted }
    let sample = try SampleArchive(in: folder, bodies: bodies, manifest: random.text(300))
    let reader = try ArchiveReader(path: sample.path)
    #expect(reader.recovery == nil)
    #expect(reader.generation == sample.generation)
    #expect(try reader.carHeader == sample.header)
    for (ordinal, (cid, body)) in sample.sections.enumerated() {
      #expect(try reader.ordinal(of: cid) == UInt64(ordinal))
      let stored = try #require(try reader.body(of: cid))
      #expect(stored == body)
    }
    var stream = sample.header
    try reader.copySections([0..<reader.generation.sectionCount]) { stream += $0.array }
    #expect(stream == sample.stream)
    #expect(UInt64(stream.count) == reader.generation.streamLength)
  }
}
