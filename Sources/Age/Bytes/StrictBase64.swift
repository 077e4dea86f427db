/// Base64 (RFC 4648, section 4) in its one canonical form: no other characters, no bits that are
/// left over, and padding either required or forbidden.
enum StrictBase64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  /// The digit of each byte, 0xff where it is none.
  private static let digits = {
    var digits = [UInt8](repeating: 0xff, count: 256)
    for (digit, character) in alphabet.enumerated() { digits[Int(character)] = UInt8(digit) }
    return digits
  }()
  private static let padding = UInt8(ascii: "=")

  /// How many characters `count` bytes take without padding.
  static func length(of count: Int) -> Int { (count * 4 + 2) / 3 }

  /// Appends the characters of bytes.
  static func encode(_ bytes: Span<UInt8>, isPadded: Bool = false, to text: inout [UInt8]) {
    text.reserveCapacity(text.count + (bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var bits: UInt32 = 0
      for index in 0..<3 { bits = bits << 8 | (index < count ? UInt32(bytes[start + index]) : 0) }
      for index in 0...3 {
        if index <= count {
          text.append(alphabet[Int(bits >> (18 - 6 * UInt32(index)) & 63)])
        } else if isPadded {
          text.append(padding)
        }
      }
    }
  }

  /// The bytes, or nil if the text is not what ``encode(_:isPadded:to:)`` makes of any.
  static func decode(_ text: Span<UInt8>, isPadded: Bool = false) -> [UInt8]? {
    var count = text.count
    if isPadded {
      guard count % 4 == 0 else { return nil }
      if count > 0, text[count - 1] == padding { count -= 1 }
      if count > 0, text[count - 1] == padding { count -= 1 }
    }
    // One character alone has too few bits for a byte.
    guard count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count * 3 / 4)
    var (bits, bitCount): (UInt32, UInt32) = (0, 0)
    for index in 0..<count {
      let digit = digits[Int(text[index])]
      guard digit < 64 else { return nil }
      bits = bits << 6 | UInt32(digit)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
      }
    }
    guard bits & (1 << bitCount - 1) == 0 else { return nil }
    return bytes
  }
}
