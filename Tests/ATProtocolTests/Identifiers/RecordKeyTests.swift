import ATProtocol
import Testing

@Suite struct `A record key` {
  @Test func `holds exactly the bytes that the specification lists`() {
    let allowed = Set(
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:~".utf8)
    for byte in UInt8.min...UInt8.max {
      let bytes = [UInt8(ascii: "a"), byte]
      let isValid = RecordKey.isValid(bytes.span)
      #expect(isValid == allowed.contains(byte), "byte \(byte)")
    }
  }

  @Test func `may have 512 bytes and not one more`() throws {
    let longest = String(repeating: "~", count: 512)
    #expect(try RecordKey(longest).text == longest)
    #expect(
      throws: IdentifierError(kind: .recordKey, reason: .tooLong(maximum: 512), offset: 512)
    ) { try RecordKey(longest + "~") }
  }

  @Test(
    arguments: [
      ("", .empty, 0),
      (".", .relativePath, 0),
      ("..", .relativePath, 0),
      ("a/b", .forbiddenByte(UInt8(ascii: "/")), 1),
      ("a%20", .forbiddenByte(UInt8(ascii: "%")), 1),
      ("self ", .forbiddenByte(UInt8(ascii: " ")), 4),
      ("\0", .forbiddenByte(0), 0),
      ("é", .forbiddenByte(0xC3), 0),
    ] as [(String, IdentifierError.Reason, Int)])
  func `is rejected for the rule it breaks, where it breaks it`(
    _ text: String, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: .recordKey, reason: reason, offset: offset)) {
      try RecordKey(text)
    }
  }

  @Test(arguments: ["...", ".a", "a.", "..a", "-", ":"])
  func `may be made of punctuation`(_ text: String) throws {
    #expect(try RecordKey(text).text == text)
  }

  @Test func `can be a TID`() throws {
    let tid = try TID("3jzfcijpj2z2a")
    #expect(RecordKey(tid).text == tid.text)
  }
}
