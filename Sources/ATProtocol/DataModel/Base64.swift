internal import IPLD

/// Base 64 by RFC 4648, section 4: the alphabet with `+` and `/`.
package enum Base64 {
  private static let alphabet = Alphabet(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

  /// The text of `bytes`, without padding.
  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var bits = BitGroups(of: 6)
    for byte in bytes { bits.put(UInt32(byte), bits: 8) { text.append(alphabet[$0]) } }
    if let last = bits.padded { text.append(alphabet[last]) }
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
    var bits = BitGroups(of: 8)
    for character in characters {
      guard let value = alphabet.value(of: character) else { return nil }
      bits.put(UInt32(value), bits: 6) { bytes.append(UInt8($0)) }
    }
    return bits.padded ?? 0 == 0 ? bytes : nil
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
}
