import Archive
import Extraction
import Files
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `A key by itself` {
  private func select(_ key: String, among paths: [String]) throws -> [Selection.Item] {
    var repository = TestRepository()
    for path in paths { try repository.add(path, ["text": .string(path)]) }
    var archive = try SeriesArchive()
    try archive.add(repository.car())
    let reader = try archive.reader()
    let entry = try #require(try SnapshotHistory(of: reader).entries.first)
    return try Selection.items([key], in: try ArchivedSnapshot(entry.cid, in: reader))
  }

  @Test func `means the post, though what is said about it has the same key`() throws {
    let post = "app.bsky.feed.post/3lkxag2qhdc22"
    let found = try select(
      "3lkxag2qhdc22",
      among: [
        post, "app.bsky.feed.threadgate/3lkxag2qhdc22", "app.bsky.feed.postgate/3lkxag2qhdc22",
        "app.bsky.feed.post/3lkxag2qhdc23",
      ])
    #expect(found == [.record(post)])
  }

  @Test func `means what is said about a post that is gone`() throws {
    let gate = "app.bsky.feed.threadgate/3lkxag2qhdc22"
    #expect(try select("3lkxag2qhdc22", among: [gate]) == [.record(gate)])
  }

  @Test(arguments: ["app.bsky.feed.like", "app.bsky.feed.postgates"])
  func `is refused where another record has it`(collection: String) throws {
    #expect(throws: BackupError.self) {
      try select(
        "3lkxag2qhdc22",
        among: ["app.bsky.feed.post/3lkxag2qhdc22", "\(collection)/3lkxag2qhdc22"])
    }
  }
}
