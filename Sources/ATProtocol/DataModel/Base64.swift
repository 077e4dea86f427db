/// Base 64 by RFC 4648, section 4: the alphabet with `+` and `/`.
package enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The text of `bytes`, without padding.
  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var held: UInt32 = 0
    var heldBits: UInt32 = 0
    for byte in bytes {
      held = held << 8 | UInt32(byte)
      heldBits += 8
      while heldBits >= 6 {
        heldBits -= 6
        text.append(alphabet[Int(held >> heldBits & 63)])
      }
    }
    if heldBits > 0 { text.append(alphabet[Int(held << (6 - heldBits) & 63)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// The text of `bytes` in the alphabet for URLs (section 5), without padding.
  package static func encodeURL(_ bytes: [UInt8]) -> String {
    String(encode(bytes).map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
  }

  /// The bytes that `text` spells, or nil.
  ///
  /// Padding may be there or not, but not half of it, and bits that are left over must be zero:
  /// each sequence of bytes has one spelling with padding and one without.
  package static func decode(_ text: String) -> [UInt8]? {
    var characters = Array(text.utf8)[...]
    if characters.last == UInt8(ascii: "=") {
      guard characters.count % 4 == 0 else { return nil }
      characters.removeLast()
      if characters.last == UInt8(ascii: "=") { characters.removeLast() }
    }
    guard characters.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(characters.count / 4 * 3 + 2)
    var held: UInt32 = 0
    var heldBits: UInt32 = 0
    for character in characters {
      guard let value = value(of: character) else { return nil }
      held = held << 6 | UInt32(value)
      heldBits += 6
      if heldBits >= 8 {
        heldBits -= 8
        bytes.append(UInt8(truncatingIfNeeded: held >> heldBits))
      }
    }
    guard held & (1 << heldBits - 1) == 0 else { return nil }
    return bytes
  }

  /// The bytes that `text` spells in the alphabet for URLs (section 5) without padding, or nil.
  ///
  /// One spelling for each sequence of bytes: no padding, no bits left over, nothing of the other
  /// alphabet.
  package static func decodeURL(_ text: String) -> [UInt8]? {
    var standard: [UInt8] = []
    standard.reserveCapacity(text.utf8.count)
    for character in text.utf8 {
      switch character {
      case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      default: standard.append(character)
      }
    }
    return decode(String(decoding: standard, as: UTF8.self))
  }

  private static func value(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
