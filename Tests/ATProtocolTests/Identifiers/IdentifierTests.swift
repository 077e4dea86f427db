import ATProtocol
import Testing

@Suite struct `All identifiers` {
  static let types: [any Identifier.Type] = [
    ATIdentifier.self, ATURI.self, DID.self, Handle.self, NSID.self, RecordKey.self,
    RecordPath.self, TID.self,
  ]

  @Test(arguments: types)
  func `reject text without a byte`(_ type: any Identifier.Type) {
    #expect(throws: IdentifierError.self) { try type.init("") }
    #expect(type.fault(inText: "") != nil)
  }

  /// Ten megabytes twenty thousand times over: reading them even once each would take many minutes.
  @Test(.timeLimit(.minutes(15)), arguments: types)
  func `refuse ten megabytes without reading them`(_ type: any Identifier.Type) {
    let hostile = String(repeating: "a.", count: 5_000_000)
    let reason: IdentifierError.Reason =
      type.kind == .tid
      ? .wrongLength(required: 13) : .tooLong(maximum: type.maximumLength)
    let expected = IdentifierError(
      kind: type.kind, reason: reason, offset: type.maximumLength)
    for _ in 0..<20_000 {
      guard type.fault(inText: hostile) == expected else {
        Issue.record("not refused for its length")
        return
      }
    }
    #expect(throws: expected) { try type.init(hostile) }
  }

  @Test(arguments: types)
  func `reject a NUL, a line feed and text beyond ASCII at either end`(
    _ type: any Identifier.Type
  ) throws {
    let example = try #require(Self.examples.first { Swift.type(of: $0) == type }).text
    for extra in ["\0", "\n", "\r\n", " ", "\u{E9}", "\u{301}", "\u{200D}", "\u{FF41}", "💩"] {
      #expect(throws: IdentifierError.self) { try type.init(extra + example) }
      #expect(throws: IdentifierError.self) { try type.init(example + extra) }
    }
  }

  /// The Kelvin sign and the long s become ASCII letters in lower case.
  @Test(arguments: ["\u{212A}.com", "a.\u{17F}b", "at.k\u{212A}"])
  func `are not made ASCII by lower-casing`(_ text: String) {
    #expect(throws: IdentifierError.self) { try Handle(text) }
  }

  @Test func `reject bytes that are not UTF-8, at the byte that was given`() {
    let bytes: [UInt8] = [0x61, 0xFF, 0x61]
    let fault = RecordKey.fault(in: bytes.span)
    #expect(fault == IdentifierError(kind: .recordKey, reason: .forbiddenByte(0xFF), offset: 1))
  }

  @Test(arguments: examples)
  func `describe themselves by their text`(_ identifier: any Identifier) {
    #expect(String(describing: identifier) == identifier.text)
  }

  static let examples: [any Identifier] = [
    try! ATIdentifier("did:plc:abc"), try! ATURI("at://did:plc:abc/com.example.foo/self"),
    try! DID("did:web:example.com"), try! Handle("alice.example.com"),
    try! NSID("com.example.fooBar"), try! RecordKey("self"),
    try! RecordPath("com.example.foo/self"), try! TID("3jzfcijpj2z2a"),
  ]
}

@Suite struct `Identifier errors` {
  @Test(arguments: [
    (
      IdentifierError(kind: .did, reason: .missingScheme, offset: 0),
      "not a DID: no \"did:\" at byte 0"
    ),
    (
      IdentifierError(kind: .atURI, reason: .missingScheme, offset: 1),
      "not an AT URI: no \"at://\" at byte 1"
    ),
    (
      IdentifierError(kind: .nsid, reason: .forbiddenByte(UInt8(ascii: "*")), offset: 12),
      "not an NSID: \"*\" is not allowed at byte 12"
    ),
    (
      IdentifierError(kind: .recordKey, reason: .forbiddenByte(0x0A), offset: 3),
      "not a record key: byte 0x0A is not allowed at byte 3"
    ),
    (
      IdentifierError(kind: .handle, reason: .tooLong(maximum: 253), offset: 253),
      "not a handle: longer than 253 bytes at byte 253"
    ),
  ])
  func `say what is wrong and where`(_ error: IdentifierError, _ sentence: String) {
    #expect(error.description == sentence)
  }
}
