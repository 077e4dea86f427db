/// Base 32 in lower case without padding: multibase `b` ([RFC 4648](https://www.rfc-editor.org/rfc/rfc4648) section 6).
public enum Base32 {
  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

  /// Eight characters for five bytes; the last group is filled up with zero bits.
  public static func encode(_ bytes: Span<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 8 + 4) / 5)
    append(bytes, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the characters, as ASCII.
  package static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
    let alphabet = alphabet
    var offset = 0
    while bytes.count - offset >= 8 {
      // Eight bytes are loaded, and the first five of them are eight characters.
      let group = UInt64(bigEndian: bytes.load(at: offset))
      var shift: UInt64 = 59
      for _ in 0..<8 {
        text.append(alphabet[Int(group >> shift & 31)])
        shift &-= 5
      }
      offset += 5
    }
    var buffer: UInt32 = 0
    var held = 0
    for index in offset..<bytes.count {
      buffer = buffer << 8 | UInt32(bytes[index])
      held += 8
      while held >= 5 {
        held -= 5
        text.append(alphabet[Int(buffer >> UInt32(held)) & 31])
      }
    }
    if held > 0 { text.append(alphabet[Int(buffer << UInt32(5 - held)) & 31]) }
  }

  /// The bytes, or nil for a character outside the alphabet, an impossible length, or filling bits that are not zero.
  public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer: UInt32 = 0
    var held = 0
    for character in text {
      let value: UInt8
      switch character {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a")
      case UInt8(ascii: "2")...UInt8(ascii: "7"): value = character - UInt8(ascii: "2") + 26
      default: return nil
      }
      buffer = buffer << 5 | UInt32(value)
      held += 5
      if held >= 8 {
        held -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(held)))
      }
    }
    // 5 bits or more left over mean a character that carried nothing; anything but zeros means another spelling.
    guard held < 5, buffer & (1 << UInt32(held) - 1) == 0 else { return nil }
    return bytes
  }
}
