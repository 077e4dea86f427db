import ATProtocol
import Archive
import Extraction
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `A search through snapshots` {
  /// Two snapshots, of which the second changed the first and the last records, and came without
  /// the last tree node.
  private func archive() throws -> SeriesArchive {
    let repository = try TestRepository(posts: 300)
    var later = repository
    try later.advance()
    for number in [0, 1, 298, 299] {
      try later.add(
        "app.bsky.feed.post/3k\(1_000_000 + number)", ["text": .string("edited number \(number)")])
    }
    let old = Set(try repository.blocks().map(\.cid))
    let block = try later.blocks()[0]
    let root = try Commit(block.bytes.span).data
    let changed = try later.blocks().filter {
      MSTNode.isLikely($0.bytes.span) && $0.cid != root && !old.contains($0.cid)
    }
    later.omitted = [try #require(changed.last).cid]
    var archive = try SeriesArchive()
    try archive.add(repository.car())
    try archive.add(later.car(), at: "2026-01-03T00:00:00Z")
    return archive
  }

  @Test func `gives each match once where a tree node is missing, which is no damage`() throws {
    let archive = try archive()
    let reader = try ArchiveReader(path: archive.path)
    var search = RecordSearch(try #require(TextPattern("number")), in: reader)
    var found: [String] = []
    try search.run(try SnapshotHistory(of: reader).entries) { found.append("\($0.path) \($0.cid)") }
    #expect(found.count > 300 && Set(found).count == found.count)
    #expect(search.gaps.map(\.isDamage) == [false])
  }

  @Test func `counts the records that are missing, and those that cannot be decoded`() throws {
    var repository = try TestRepository(posts: 30)
    repository.add("a.b.c/cut", bytes: [0xa1, 0x61])
    repository.omitted = Set(
      ["3k1000003", "3k1000004"].compactMap { repository.cid(of: "app.bsky.feed.post/\($0)") })
    var later = repository
    try later.advance()
    later.add("a.b.c/cut2", bytes: [0xa1, 0x62])
    var archive = try SeriesArchive()
    try archive.add(repository.car())
    try archive.add(later.car(), at: "2026-01-03T00:00:00Z")
    let reader = try ArchiveReader(path: archive.path)
    var search = RecordSearch(try #require(TextPattern("nowhere")), in: reader)
    try search.run(try SnapshotHistory(of: reader).entries) { _ in Issue.record("found") }
    #expect(
      search.gaps.map(\.what) == [
        "snapshot 1: not searched: records that are missing (2)",
        "snapshot 1: not searched: records that cannot be decoded (1)",
        "snapshot 2: not searched: records that cannot be decoded (1)",
      ])
    #expect(search.gaps.allSatisfy { !$0.isDamage })
  }
}
