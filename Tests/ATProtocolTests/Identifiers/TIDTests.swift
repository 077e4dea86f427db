import ATProtocol
import Testing

@Suite struct `A TID` {
  @Test(
    arguments: [
      (0, "2222222222222"),
      (1, "2222222222223"),
      (31, "222222222222z"),
      (32, "2222222222232"),
      (1 << 60, "3222222222222"),
      (.max, "jzzzzzzzzzzzz"),
    ] as [(UInt64, String)])
  func `is a 64-bit integer in thirteen digits`(_ integer: UInt64, _ text: String) throws {
    #expect(TID(integer: integer).text == text)
    #expect(try TID(text).integer == integer)
    #expect(try TID(text) == TID(integer: integer))
  }

  @Test func `holds a time and a clock`() {
    let tid = TID(integer: 1_700_000_000_123_456 << 10 | 0x2A5)
    #expect(tid.microseconds == 1_700_000_000_123_456)
    #expect(tid.clockIdentifier == 0x2A5)
  }

  @Test func `keeps bit 63 out of its time`() {
    let tid = TID(integer: .max)
    #expect(tid.microseconds == 1 << 53 - 1)
    #expect(tid.clockIdentifier == 1023)
    #expect(tid.integer == .max)
  }

  @Test func `sorts as its integer does`() {
    // Scattered over the whole range and over all magnitudes by the golden ratio.
    let integers = (0..<1000).map { ($0 as UInt64) &* 0x9E37_79B9_7F4A_7C15 >> ($0 % 64) }
    #expect(integers.sorted().map(TID.init(integer:)) == integers.map(TID.init(integer:)).sorted())
  }

  @Test(
    arguments: [
      ("", .wrongLength(required: 13), 0),
      ("3jzfcijpj2z2", .wrongLength(required: 13), 12),
      ("3jzfcijpj2z2aa", .wrongLength(required: 13), 13),
      ("3jzfcijpj2z21", .forbiddenByte(UInt8(ascii: "1")), 12),
      ("3jzfcijpj2z28", .forbiddenByte(UInt8(ascii: "8")), 12),
      ("3Jzfcijpj2z2a", .forbiddenByte(UInt8(ascii: "J")), 1),
      ("3jzf-cijpj2z2", .forbiddenByte(UInt8(ascii: "-")), 4),
      ("k222222222222", .overflow, 0),
      ("zzzzzzzzzzzzz", .overflow, 0),
    ] as [(String, IdentifierError.Reason, Int)])
  func `is rejected for the rule it breaks, where it breaks it`(
    _ text: String, _ reason: IdentifierError.Reason, _ offset: Int
  ) {
    #expect(throws: IdentifierError(kind: .tid, reason: reason, offset: offset)) { try TID(text) }
  }
}
