/// Base 32 in lower case without padding: multibase `b` ([RFC
/// 4648](https://www.rfc-editor.org/rfc/rfc4648) section 6).
package enum Base32 {
  /// Eight characters for five bytes; the last group is filled up with zero bits.
  package static func encode(_ bytes: Span<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 8 + 4) / 5)
    append(bytes, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the characters, as ASCII.
  package static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
    text.append(addingCapacity: (bytes.count * 8 + 4) / 5) { characters in
      var at = 0
      // Five bytes, read as the first of eight.
      while bytes.count - at >= 8 {
        let group = UInt64(bigEndian: bytes.load(at: at))
        for place in UInt64(0)..<8 {
          characters.append(character(UInt32(truncatingIfNeeded: group >> (59 - 5 * place) & 31)))
        }
        at += 5
      }
      var bits = BitGroups(of: 5)
      for index in at..<bytes.count {
        bits.put(UInt32(bytes[index]), bits: 8) { characters.append(character($0)) }
      }
      if let last = bits.padded { characters.append(character(last)) }
    }
  }

  /// The character for a value below 32.
  private static func character(_ value: UInt32) -> UInt8 {
    UInt8(truncatingIfNeeded: value)
      &+ (value < 26 ? UInt8(ascii: "a") : UInt8(ascii: "2") &- 26)
  }

  /// The bytes, or nil for a character outside the alphabet, an impossible length, or filling bits
  /// that are not zero.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var bits = BitGroups(of: 8)
    for character in text {
      let value: UInt8
      switch character {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a")
      case UInt8(ascii: "2")...UInt8(ascii: "7"): value = character - UInt8(ascii: "2") + 26
      default: return nil
      }
      bits.put(UInt32(value), bits: 5) { bytes.append(UInt8($0)) }
    }
    // 5 bits or more left over mean a character that carried nothing; anything but zeros means
    // another spelling.
    return bits.heldCount < 5 && bits.padded ?? 0 == 0 ? bytes : nil
  }
}
