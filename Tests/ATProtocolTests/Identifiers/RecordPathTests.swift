import ATProtocol
import Testing

@Suite struct `A record path` {
  @Test func `has a collection and a record key`() throws {
    let path = try RecordPath("app.bsky.feed.post/3jzfcijpj2z2a")
    #expect(path.collection == "app.bsky.feed.post")
    #expect(path.recordKey == "3jzfcijpj2z2a")
    #expect(
      try path
        == RecordPath(collection: NSID(path.collection), recordKey: RecordKey(path.recordKey)))
    #expect(path.oddity == nil)
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
      ("", .empty, 0),
      ("com.example.foo", .tooFewSegments(minimum: 2), 15),
      ("/com.example.foo/a", .emptySegment, 0),
      ("com.example.foo/", .emptySegment, 16),
      ("com.example.foo//a", .forbiddenByte(UInt8(ascii: "/")), 16),
      ("com.example.foo/a/b", .forbiddenByte(UInt8(ascii: "/")), 17),
      ("com.example.foo/..", .relativePath, 16),
      ("com.example.foo/a\0", .forbiddenByte(0), 17),
    ] as [(String, IdentifierError.Reason, Int)])
  func `is rejected at the place that breaks a rule`(
    _ text: String, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: .recordPath, reason: reason, offset: offset)) {
      try RecordPath(text)
    }
    #expect(!RecordPath.accepts(text))
    #expect(RecordPath(checked: text).oddity == RecordPath.fault(inText: text))
  }

  @Test(
    arguments: [
      ("polka.post/3jzfcijpj2z2a", .nsid, .tooFewSegments(minimum: 3), 10),
      (
        "com.example.foo/\(String(repeating: "k", count: 513))", .recordKey, .tooLong(maximum: 512),
        528
      ),
    ] as [(String, IdentifierError.Kind, IdentifierError.Reason, Int)])
  func `is odd where no server would write it`(
    _ text: String, _ kind: IdentifierError.Kind, _ reason: IdentifierError.Reason, _ offset: Int
  ) throws {
    let expected = IdentifierError(kind: kind, reason: reason, offset: offset)
    #expect(try RecordPath(text).oddity == expected)
  }
  @Test(arguments: ["A0/374913", "a/b", "com.example.foo/self", "a/...", "_:~-./:", ".a/a."])
  func `is two segments of the allowed characters`(_ key: String) {
    #expect(RecordPath.accepts(key))
  }

  @Test(arguments: [
    "", "a", "/", "a/", "/a", "a/b/c", "a//b", "./a", "a/.", "../a", "a/..", "a b/c", "a/b%20",
    "a/é", "a/b\0",
  ])
  func `is nothing else`(_ key: String) {
    #expect(!RecordPath.accepts(key))
  }

  @Test func `may have 1024 bytes and not one more`() {
    #expect(RecordPath.accepts("a/" + String(repeating: "b", count: 1022)))
    #expect(!RecordPath.accepts("a/" + String(repeating: "b", count: 1023)))
  }
}
