import ATProtocol
import Archive
import ArchiveTestSupport
import Copying
import Files
import IPLD
internal import Packing
import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing

/// Whether a block is there: a block that the archive holds is there for every snapshot that
/// reaches it, whichever CAR brought it.
@Suite struct `A block that an earlier snapshot brought and a later CAR lacks` {
  private let series: Series
  private let repository: TestRepository
  private let node: CID

  /// A whole snapshot, and one whose CAR lacks a tree node that both have, with records below it
  /// that refer to a blob.
  init() throws {
    var series = try Series()
    var repository = try TestRepository(posts: 300)
    try repository.add("app.bsky.feed.post/image", blob: .blob([1, 2, 3]))
    try series.pack(repository.car(), blobs: ["image": [1, 2, 3]])
    let first = Set(try repository.blocks().map(\.cid))
    try repository.advance()
    try repository.add("app.zzz/last", ["x": .integer(1)])
    let shared = try repository.blocks().filter { block in
      guard let node = try? MSTNode(block.bytes.span) else { return false }
      return first.contains(block.cid) && node.entries.count > 2
    }
    node = try #require(shared.first).cid
    repository.omitted = [node]
    try series.pack(repository.car(), blobs: ["image": [1, 2, 3]])
    (self.series, self.repository) = (series, repository)
  }

  private func expectWhole(_ snapshot: ArchivedSnapshot) throws {
    #expect(!snapshot.snapshot.isComplete, "its CAR is not whole")
    var keys: [[UInt8]] = []
    let contents = try SnapshotBlocks(snapshot, keepsRecords: true).contents { record, body in
      keys.append(record.key)
      #expect(body.array == repository.records[record.key])
    }
    #expect(contents.tree.isComplete)
    #expect(contents.flaw == nil)
    #expect(keys.count == repository.records.count)
    #expect(contents.blobs.entries.map(\.cid) == [.blob([1, 2, 3])])
    let laidOut = try LaidOutRepository(of: snapshot)
    var absentCount = 0
    let lostNodes = try laidOut.forEachRecord { _, _, bytes in
      absentCount += bytes == nil ? 1 : 0
    }
    #expect(lostNodes == 0 && absentCount == 0)
    #expect(laidOut.block(node) != nil)
  }

  @Test func `is there`() throws {
    let snapshot = try ArchivedSnapshot.newest(in: series.reader)
    try expectWhole(snapshot)
    let restored = try RestoredRepository(snapshot)
    #expect(restored.isExact)
    #expect(restored.withBytes { $0.array } == series.cars[series.heads[1]])
  }

  @Test func `is there still when only the later one is left`() throws {
    _ = try RetentionPolicy().prune(
      FileStorage.open(series.path), name: "a", forgetting: [1])
    #expect(try SnapshotHistory(of: series.reader).entries.count == 1)
    _ = try ArchiveCopier(level: 3).compact(series.path)
    let snapshot = try ArchivedSnapshot.newest(in: series.reader)
    try expectWhole(snapshot)
    #expect(
      try RestoredRepository(snapshot).withBytes { $0.array } == series.cars[series.heads[1]])
  }
}
