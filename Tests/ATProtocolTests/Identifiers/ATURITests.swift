import ATProtocol
import Testing

@Suite struct `An AT URI` {
  @Test func `may mean a repository`() throws {
    let uri = try ATURI("at://did:plc:abc")
    #expect(uri.authority == .did(try DID("did:plc:abc")))
    #expect(uri.collection == nil)
    #expect(uri.recordKey == nil)
    #expect(uri.path == nil)
    #expect(uri == ATURI(authority: uri.authority))
  }

  @Test func `may mean a collection`() throws {
    let uri = try ATURI("at://alice.test/com.example.foo")
    #expect(uri.authority == .handle(try Handle("alice.test")))
    #expect(uri.collection == (try NSID("com.example.foo")))
    #expect(uri.path == nil)
  }

  @Test func `may mean a record`() throws {
    let uri = try ATURI("at://did:plc:abc/com.example.foo/pre:fix")
    #expect(uri.recordKey == (try RecordKey("pre:fix")))
    let path = try #require(uri.path)
    #expect(path.text == "com.example.foo/pre:fix")
  }

  @Test func `has a handle in lower case and keeps the rest`() throws {
    let uri = try ATURI("at://Alice.TEST/com.example.fooBar/Self")
    #expect(uri.text == "at://alice.test/com.example.fooBar/Self")
    #expect(try ATURI("at://did:plc:ABC").text == "at://did:plc:ABC")
  }

  @Test func `of more than 8 KiB is rejected for its length`() {
    let text = "at://did:plc:abc/com.example.foo/" + String(repeating: "o", count: 8192)
    #expect(throws: IdentifierError(kind: .atURI, reason: .tooLong(maximum: 8192), offset: 8192)) {
      try ATURI(text)
    }
  }

  @Test(
    arguments: [
      ("", .atURI, .empty, 0),
      ("at", .atURI, .missingScheme, 2),
      ("at:/did:plc:abc", .atURI, .missingScheme, 4),
      ("AT://did:plc:abc", .atURI, .missingScheme, 0),
      ("https://alice.test", .atURI, .missingScheme, 0),
      ("at://", .atIdentifier, .empty, 5),
      ("at:///com.example.foo", .atIdentifier, .empty, 5),
      ("at://alice", .handle, .tooFewSegments(minimum: 2), 10),
      ("at://alice@alice.test", .handle, .forbiddenByte(UInt8(ascii: "@")), 10),
      ("at://did:plc:", .did, .emptySegment, 13),
      ("at://did:plc:abc#f", .did, .forbiddenByte(UInt8(ascii: "#")), 16),
      ("at://did:plc:abc?q", .did, .forbiddenByte(UInt8(ascii: "?")), 16),
      ("at://did:plc:abc/", .nsid, .empty, 17),
      ("at://did:plc:abc//self", .nsid, .empty, 17),
      ("at://did:plc:abc/com.example", .nsid, .tooFewSegments(minimum: 3), 28),
      ("at://did:plc:abc/com.example.foo#f", .nsid, .forbiddenByte(UInt8(ascii: "#")), 32),
      ("at://did:plc:abc/com.example.foo/", .recordKey, .empty, 33),
      ("at://did:plc:abc/com.example.foo/..", .recordKey, .relativePath, 33),
      ("at://did:plc:abc/com.example.foo/a/", .recordKey, .forbiddenByte(UInt8(ascii: "/")), 34),
      ("at://did:plc:abc/com.example.foo/%20", .recordKey, .forbiddenByte(UInt8(ascii: "%")), 33),
      ("at://did:plc:abc/com.example.foo/a#f", .recordKey, .forbiddenByte(UInt8(ascii: "#")), 34),
    ] as [(String, IdentifierError.Kind, IdentifierError.Reason, Int)])
  func `is rejected in the part that breaks a rule, at its place in the whole`(
    _ text: String, _ kind: IdentifierError.Kind, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: kind, reason: reason, offset: offset)) { try ATURI(text) }
  }
}
