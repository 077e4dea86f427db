import IPLD
import TestSupport
import Testing

@Suite struct `A varint` {
  private static let values: [(UInt64, String)] = [
    (0, "00"), (1, "01"), (127, "7f"), (128, "80 01"), (255, "ff 01"), (300, "ac 02"),
    (16383, "ff 7f"), (16384, "80 80 01"), (2_097_151, "ff ff 7f"), (2_097_152, "80 80 80 01"),
    (1 << 56 - 1, "ff ff ff ff ff ff ff 7f"), (1 << 56, "80 80 80 80 80 80 80 80 01"),
    (1 << 62, "80 80 80 80 80 80 80 80 40"), (1 << 63 - 1, "ff ff ff ff ff ff ff ff 7f"),
  ]

  @Test func `has one spelling for each number`() throws {
    for (value, hex) in Self.values {
      let bytes = try [UInt8](hex: hex)
      var written: [UInt8] = []
      Varint.append(value, to: &written)
      #expect(written == bytes)
      #expect(Varint.length(of: value) == bytes.count, "\(value)")
      var offset = 0
      #expect(Varint.read(bytes.span, at: &offset) == .value(value))
      #expect(offset == bytes.count)
    }
  }

  @Test func `is as long as its number of bits says`() {
    for bits in 0..<63 {
      let least: UInt64 = 1 << UInt64(bits)
      for value in [least, 2 * least - 1] {
        var written: [UInt8] = []
        Varint.append(value, to: &written)
        #expect(written.count == bits / 7 + 1)
        #expect(Varint.length(of: value) == written.count)
      }
    }
    #expect(Varint.length(of: 1 << 63 - 1) == Varint.maximumLength)
  }

  @Test(
    arguments: [
      ("", .truncated), ("80", .truncated), ("ff ff", .truncated),
      ("ff ff ff ff ff ff ff ff", .truncated),
      ("80 00", .notMinimal), ("81 00", .notMinimal), ("ff 00", .notMinimal),
      ("80 80 00", .notMinimal), ("ff ff ff ff ff ff ff ff 00", .notMinimal),
      // 2^63, the greatest of 64 bits, and one that never ends.
      ("80 80 80 80 80 80 80 80 80 01", .tooLong), ("ff ff ff ff ff ff ff ff ff 01", .tooLong),
      ("80 80 80 80 80 80 80 80 80 00", .tooLong), ("ff ff ff ff ff ff ff ff ff", .tooLong),
    ] as [(String, Varint.Outcome)])
  func `is refused when it is spelt otherwise`(hex: String, outcome: Varint.Outcome) throws {
    let bytes = try [UInt8](hex: hex)
    var offset = 0
    #expect(Varint.read(bytes.span, at: &offset) == outcome)
    #expect(offset == 0, "the offset moves with a value only")
    let behind = [0x01] + bytes
    offset = 1
    #expect(Varint.read(behind.span, at: &offset) == outcome)
    #expect(offset == 1)
  }

  @Test func `follows another`() throws {
    var bytes: [UInt8] = []
    for (value, _) in Self.values { Varint.append(value, to: &bytes) }
    var offset = 0
    for (value, _) in Self.values {
      #expect(Varint.read(bytes.span, at: &offset) == .value(value))
    }
    #expect(offset == bytes.count)
    #expect(Varint.read(bytes.span, at: &offset) == .truncated)
  }

  @Test func `of any bytes is refused or written the same again`() {
    var generator = SeededGenerator()
    print("varints: \(generator)")
    for _ in 0..<20000 {
      let bytes = (0..<Int.random(in: 1...11, using: &generator)).map { _ in
        UInt8.random(in: .min ... .max, using: &generator)
          | (Int.random(in: 0..<4, using: &generator) > 0 ? 0x80 : 0)
      }
      var offset = 0
      guard case .value(let value) = Varint.read(bytes.span, at: &offset) else {
        #expect(offset == 0)
        continue
      }
      var written: [UInt8] = []
      Varint.append(value, to: &written)
      guard written == Array(bytes.prefix(offset)) else {
        Issue.record("\(generator): \(Hex.encode(bytes))")
        return
      }
    }
  }
}
