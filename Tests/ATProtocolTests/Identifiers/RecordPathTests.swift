import ATProtocol
import Testing

@Suite struct `A record path` {
  @Test func `has a collection and a record key`() throws {
    let path = try RecordPath("app.bsky.feed.post/3jzfcijpj2z2a")
    #expect(path.collection == (try NSID("app.bsky.feed.post")))
    #expect(path.recordKey == (try RecordKey("3jzfcijpj2z2a")))
    #expect(path == RecordPath(collection: path.collection, recordKey: path.recordKey))
  }

  @Test func `sorts by its bytes, not by its collection first`() throws {
    let paths = try ["a.b.c/z", "a.b.c.d/a", "a.b.cd/a", "a.b.C/~"].map { try RecordPath($0) }
    #expect(paths.sorted().map(\.text) == ["a.b.C/~", "a.b.c.d/a", "a.b.c/z", "a.b.cd/a"])
  }

  @Test func `fits in a key of the tree even when both parts are as long as they may be`() throws {
    let segment = String(repeating: "a", count: 63)
    let collection = "\(segment).\(segment).\(segment).\(segment.dropLast(2)).\(segment)"
    let path = "\(collection)/\(String(repeating: "k", count: 512))"
    #expect(try RecordPath(path).text.utf8.count == 830)
  }

  @Test(
    arguments: [
      ("", .recordPath, .empty, 0),
      ("com.example.foo", .recordPath, .tooFewSegments(minimum: 2), 15),
      ("/com.example.foo/a", .nsid, .empty, 0),
      ("com.example/a", .nsid, .tooFewSegments(minimum: 3), 11),
      ("com.example.foo/", .recordKey, .empty, 16),
      ("com.example.foo//a", .recordKey, .forbiddenByte(UInt8(ascii: "/")), 16),
      ("com.example.foo/a/b", .recordKey, .forbiddenByte(UInt8(ascii: "/")), 17),
      ("com.example.foo/..", .recordKey, .relativePath, 16),
      ("com.example.foo/a\0", .recordKey, .forbiddenByte(0), 17),
    ] as [(String, IdentifierError.Kind, IdentifierError.Reason, Int)])
  func `is rejected in the part that breaks a rule, at its place in the whole`(
    _ text: String, _ kind: IdentifierError.Kind, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: kind, reason: reason, offset: offset)) {
      try RecordPath(text)
    }
    #expect(!RecordPath.accepts(text))
  }
}

@Suite struct `A key of the tree` {
  @Test(arguments: ["A0/374913", "a/b", "com.example.foo/self", "a/...", "_:~-./:", ".a/a."])
  func `is two segments of the allowed characters`(_ key: String) {
    #expect(isTreeKey(key))
  }

  @Test(arguments: [
    "", "a", "/", "a/", "/a", "a/b/c", "a//b", "./a", "a/.", "../a", "a/..", "a b/c", "a/b%20",
    "a/é", "a/b\0",
  ])
  func `is nothing else`(_ key: String) {
    #expect(!isTreeKey(key))
  }

  @Test func `may have 1024 bytes and not one more`() {
    #expect(isTreeKey("a/" + String(repeating: "b", count: 1022)))
    #expect(!isTreeKey("a/" + String(repeating: "b", count: 1023)))
  }

  private func isTreeKey(_ key: String) -> Bool { RecordPath.isTreeKey(key.utf8.span) }
}
