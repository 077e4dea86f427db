import ATProtocol
import Testing

@Suite struct `A DID` {
  @Test func `has a method and an identifier of that method`() throws {
    let did = try DID("did:web:localhost%3A1234:user")
    #expect(did.method == "web")
    #expect(did.methodSpecificID == "localhost%3A1234:user")
    #expect(did.text == "did:web:localhost%3A1234:user")
  }

  @Test func `may have an identifier that starts with colons`() throws {
    let did = try DID("did:method::::val")
    #expect(did.method == "method")
    #expect(did.methodSpecificID == ":::val")
  }

  @Test func `keeps its case and differs by it`() throws {
    #expect(try DID("did:method:VAL") != DID("did:method:val"))
  }

  @Test func `may have 2048 bytes and not one more`() throws {
    let longest = "did:m:" + String(repeating: "v", count: 2042)
    #expect(try DID(longest).text == longest)
    #expect(throws: IdentifierError(kind: .did, reason: .tooLong(maximum: 2048), offset: 2048)) {
      try DID(longest + "v")
    }
  }

  @Test(
    arguments: [
      ("", .empty, 0),
      ("did", .missingScheme, 3),
      ("DID:plc:a", .missingScheme, 0),
      ("dId:plc:a", .missingScheme, 1),
      (" did:plc:a", .missingScheme, 0),
      ("did:", .emptySegment, 4),
      ("did::a", .emptySegment, 4),
      ("did:plc", .tooFewSegments(minimum: 3), 7),
      ("did:plc:", .emptySegment, 8),
      ("did:Plc:a", .forbiddenByte(UInt8(ascii: "P")), 4),
      ("did:p1c:a", .forbiddenByte(UInt8(ascii: "1")), 5),
      ("did:plc:a/b", .forbiddenByte(UInt8(ascii: "/")), 9),
      ("did:plc:a?b", .forbiddenByte(UInt8(ascii: "?")), 9),
      ("did:plc:a#b", .forbiddenByte(UInt8(ascii: "#")), 9),
      ("did:plc:a b", .forbiddenByte(UInt8(ascii: " ")), 9),
      ("did:plc:\u{E9}", .forbiddenByte(0xC3), 8),
      ("did:plc:a:", .forbiddenEnd(UInt8(ascii: ":")), 9),
      ("did:plc:a%", .forbiddenEnd(UInt8(ascii: "%")), 9),
    ] as [(String, IdentifierError.Reason, Int)])
  func `is rejected for the rule it breaks, where it breaks it`(
    _ text: String, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: .did, reason: reason, offset: offset)) { try DID(text) }
  }
}

@Suite struct `A DID or handle` {
  @Test func `is a DID if it starts like one`() throws {
    #expect(try ATIdentifier("did:plc:abc") == .did(DID("did:plc:abc")))
  }

  @Test func `is a handle in lower case otherwise`() throws {
    let identifier = try ATIdentifier("Alice.Example.COM")
    #expect(identifier == .handle(try Handle("alice.example.com")))
    #expect(identifier.text == "alice.example.com")
  }

  @Test(
    arguments: [
      ("", .atIdentifier, .empty, 0),
      ("did:plc", .did, .tooFewSegments(minimum: 3), 7),
      ("DID:plc:a", .handle, .forbiddenByte(UInt8(ascii: ":")), 3),
      ("@alice.test", .handle, .forbiddenByte(UInt8(ascii: "@")), 0),
    ] as [(String, IdentifierError.Kind, IdentifierError.Reason, Int)])
  func `is rejected by the grammar it started in`(
    _ text: String, _ kind: IdentifierError.Kind, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: kind, reason: reason, offset: offset)) {
      try ATIdentifier(text)
    }
  }
}
