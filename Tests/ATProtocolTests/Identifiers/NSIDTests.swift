import ATProtocol
import Testing

@Suite struct `An NSID` {
  @Test func `has an authority and a name`() throws {
    let nsid = try NSID("com.atproto.sync.getRepo")
    #expect(nsid.authority == ["com", "atproto", "sync"])
    #expect(nsid.name == "getRepo")
  }

  @Test func `keeps its case and differs by it`() throws {
    #expect(try NSID("com.Example.fooBar").text == "com.Example.fooBar")
    #expect(try NSID("com.example.fooBar") != NSID("com.example.foobar"))
  }

  @Test func `may have 317 bytes and not one more`() throws {
    let segment = String(repeating: "a", count: 63)
    let longest = "\(segment).\(segment).\(segment).\(segment.dropLast(2)).\(segment)"
    #expect(try NSID(longest).text.utf8.count == 317)
    #expect(throws: IdentifierError(kind: .nsid, reason: .tooLong(maximum: 317), offset: 317)) {
      try NSID(longest + "a")
    }
  }

  @Test func `may have segments of 63 bytes and not one more`() throws {
    let long = String(repeating: "a", count: 64)
    let error = IdentifierError.Reason.segmentTooLong(maximum: 63)
    #expect(throws: IdentifierError(kind: .nsid, reason: error, offset: 67)) {
      try NSID("com.\(long).foo")
    }
    #expect(throws: IdentifierError(kind: .nsid, reason: error, offset: 75)) {
      try NSID("com.example.\(long)")
    }
  }

  @Test(
    arguments: [
      ("", .empty, 0),
      ("com", .tooFewSegments(minimum: 3), 3),
      ("com.example", .tooFewSegments(minimum: 3), 11),
      (".com.example.foo", .emptySegment, 0),
      ("com..example.foo", .emptySegment, 4),
      ("com.example.foo.", .emptySegment, 16),
      ("...", .emptySegment, 0),
      ("0com.example.foo", .leadingDigit, 0),
      ("com.example.0foo", .leadingDigit, 12),
      ("com.-example.foo", .hyphenAtEdge, 4),
      ("com.example-.foo", .hyphenAtEdge, 11),
      ("com.example.fo-o", .forbiddenByte(UInt8(ascii: "-")), 14),
      ("com.example.*", .forbiddenByte(UInt8(ascii: "*")), 12),
      ("com.example.foo#bar", .forbiddenByte(UInt8(ascii: "#")), 15),
      ("com.exa_mple.foo", .forbiddenByte(UInt8(ascii: "_")), 7),
      ("com.example.foo/self", .forbiddenByte(UInt8(ascii: "/")), 15),
      ("com.exämple.foo", .forbiddenByte(0xC3), 6),
    ] as [(String, IdentifierError.Reason, Int)])
  func `is rejected for the rule it breaks, where it breaks it`(
    _ text: String, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: .nsid, reason: reason, offset: offset)) {
      try NSID(text)
    }
  }

  @Test func `is what the specification's expression matches, with digits in the name`() {
    let expression =
      /[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)+\.[a-zA-Z][a-zA-Z0-9]{0,62}/
    for text in texts(of: ["a", "0", "-", "."], upTo: 7) {
      let matches = text.wholeMatch(of: expression) != nil
      #expect(NSID.accepts(text) == matches, "\(text)")
    }
  }
}
