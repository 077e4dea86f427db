import ATProtocol
import Testing

@Suite struct `An account as people paste it` {
  @Test(arguments: [
    "alice.test", "@alice.test", " alice.test.", "https://alice.test", "https://alice.test/",
    "http://Alice.test/", "alice.test/", "https://bsky.app/profile/alice.test",
    "bsky.app/profile/alice.test/post/3k?x", "at://alice.test/app.bsky.feed.post/3k",
  ])
  func `is its handle`(_ text: String) throws {
    #expect(try ATIdentifier(pasted: text) == .handle(Handle("alice.test")))
  }

  @Test(arguments: [
    "https://alice.test/about", "alice.test//", "https://", "/", "ftp://alice.test",
  ])
  func `is not what is something else`(_ text: String) {
    #expect(throws: IdentifierError.self) { try ATIdentifier(pasted: text) }
  }
}

@Suite struct `A handle` {
  @Test func `is held in lower case`() throws {
    #expect(try Handle("XX.LCS.Mit.EDU").text == "xx.lcs.mit.edu")
    #expect(try Handle("A.test") == Handle("a.TEST"))
  }

  @Test(arguments: Handle.reservedTopLevels.sorted())
  func `under a reserved top-level domain is syntax only`(_ topLevel: String) throws {
    #expect(try Handle("alice.\(topLevel)").hasReservedTopLevel)
    #expect(try Handle("alice.\(topLevel.uppercased())").hasReservedTopLevel)
    #expect(try !Handle("\(topLevel).com").hasReservedTopLevel)
  }

  @Test(arguments: ["alice.test", "alice.com", "local.alice.dev", "alice.localhosts", "a.xlocal"])
  func `under another top-level domain may be someone's`(_ text: String) throws {
    #expect(try !Handle(text).hasReservedTopLevel)
  }

  @Test func `knows its top-level domain`() throws {
    #expect(try Handle("alice.co.UK").topLevel == "uk")
  }

  @Test func `may have 253 bytes and labels of 63, and no more`() throws {
    let label = String(repeating: "a", count: 63)
    let longest = [label, label, label, String(label.dropLast(2))].joined(separator: ".")
    #expect(try Handle(longest).text.utf8.count == 253)
    #expect(throws: IdentifierError(kind: .handle, reason: .tooLong(maximum: 253), offset: 253)) {
      try Handle(longest + "a")
    }
    #expect(
      throws: IdentifierError(kind: .handle, reason: .segmentTooLong(maximum: 63), offset: 65)
    ) { try Handle("b." + label + "a.com") }
  }

  @Test(
    arguments: [
      ("", .empty, 0),
      ("com", .tooFewSegments(minimum: 2), 3),
      ("alice.test.", .emptySegment, 11),
      (".alice.test", .emptySegment, 0),
      ("alice..test", .emptySegment, 6),
      (".", .emptySegment, 0),
      ("-alice.test", .hyphenAtEdge, 0),
      ("alice-.test", .hyphenAtEdge, 5),
      ("alice.-test", .hyphenAtEdge, 6),
      ("alice.test-", .hyphenAtEdge, 10),
      ("alice.-", .hyphenAtEdge, 6),
      ("alice.0a", .leadingDigit, 6),
      ("127.0.0.1", .leadingDigit, 8),
      ("al_ice.test", .forbiddenByte(UInt8(ascii: "_")), 2),
      ("@alice.test", .forbiddenByte(UInt8(ascii: "@")), 0),
      ("alice.test ", .forbiddenByte(UInt8(ascii: " ")), 10),
      ("alice:8080.test", .forbiddenByte(UInt8(ascii: ":")), 5),
      ("ж.test", .forbiddenByte(0xD0), 0),
    ] as [(String, IdentifierError.Reason, Int)])
  func `is rejected for the rule it breaks, where it breaks it`(
    _ text: String, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: .handle, reason: reason, offset: offset)) {
      try Handle(text)
    }
  }

  @Test func `is what the specification's expression matches`() {
    let expression =
      /([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?/
    for text in texts(of: ["a", "0", "-", "."], upTo: 7) {
      let matches = text.wholeMatch(of: expression) != nil
      #expect(Handle.accepts(text) == matches, "\(text)")
    }
  }
}
