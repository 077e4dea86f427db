import ATProtocol
import Archive
import ArchiveTestSupport
import Extraction
import IPLD
import Snapshots
import TestSupport
import Testing
import Verification

/// CARs whose blocks stand in quite another order than in the archive.
@Suite struct `A CAR in an order of its own` {
  /// A CAR of these sections, the commit's CID as its root.
  private func car(_ blocks: [Block], root: CID) -> [UInt8] {
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: [root], to: &bytes)
    for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
    return bytes
  }

  @Test func `is given back bit for bit, blocks that come again included`() throws {
    var random = SeededGenerator()
    print("A CAR in an order of its own: \(random)")
    var repository = try TestRepository(posts: 4000)
    let text = String(repeating: "a record that is stored alone", count: 4000)
    try repository.add("a.b.c/long", ["text": .string(text)])
    var series = try Series()
    try series.pack(try repository.car())
    for round in 0..<3 {
      repository.rev = "3lscuqc52or\(round + 3)x"
      try repository.add("a.b.c/\(round)", ["round": .integer(Int128(round))])
      var blocks = try repository.blocks()
      let root = blocks[0].cid
      blocks += blocks.shuffled(using: &random).prefix(round * 1000)
      blocks.shuffle(using: &random)
      try series.pack(car(blocks, root: root))
    }
    try series.check()
    let reader = try series.reader
    for head in series.heads.dropFirst() {
      let verdict = try RestoredRepository(ArchivedSnapshot(head, in: reader))
      #expect(verdict.flaw == nil, "\(random)")
    }
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.damage == [], "\(random)")
    #expect(report.verdict == .intact, "\(random)")
    // The changes from one to the next are found anyway.
    let diff = try SnapshotDiff.compare(
      ArchivedSnapshot(series.heads[1], in: reader), ArchivedSnapshot(series.heads[3], in: reader))
    #expect(diff.createdCount == 2)
    #expect(diff.deletedCount + diff.updatedCount == 0)
  }

  @Test func `is no more than the manifest says, however often its order names a section`() throws {
    let repository = try TestRepository(posts: 100)
    let length = try repository.car().count
    var order = BlockOrder()
    for _ in 0..<2000 {
      order.append(5)
      order.append(3)
    }
    for byteCount in [length, 400] {
      let folder = try TemporaryFolder()
      let path = try handMadeArchive(in: folder, repository) { snapshot in
        snapshot.car.runs = order.encoded
        snapshot.car.sectionCount = order.count
        snapshot.car.byteCount = UInt64(byteCount)
      }
      let restored = try RestoredRepository(
        ArchivedSnapshot.newest(in: try ArchiveReader(path: path)))
      #expect(!restored.isExact)
      #expect(restored.flaw == "\(SnapshotError.malformedOrder)")
    }
  }
}
