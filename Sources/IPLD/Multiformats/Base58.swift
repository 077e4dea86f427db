/// Base 58 with Bitcoin's alphabet: multibase `z`, and the text of a CID of version 0.
///
/// A number written in base 58, with one leading `1` for each leading zero byte. The work grows
/// with the square of the length, so the length is limited.
package enum Base58 {
  /// The longest text that is decoded; a CID takes 46 to 50 characters.
  package static let maximumLength = 512

  private static let alphabet = Alphabet(
    "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")

  /// The text for `bytes`.
  package static func encode(_ bytes: [UInt8]) -> String {
    let zeros = bytes.prefix { $0 == 0 }.count
    var digits: [UInt8] = []  // least significant first
    for byte in bytes.dropFirst(zeros) {
      var carry = Int(byte)
      for index in digits.indices {
        carry += Int(digits[index]) << 8
        digits[index] = UInt8(carry % 58)
        carry /= 58
      }
      while carry > 0 {
        digits.append(UInt8(carry % 58))
        carry /= 58
      }
    }
    digits += [UInt8](repeating: 0, count: zeros)
    return String(decoding: digits.reversed().map { alphabet[$0] }, as: UTF8.self)
  }

  /// The bytes, or nil for a character outside the alphabet or a text over ``maximumLength``.
  package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count <= maximumLength else { return nil }
    var bytes: [UInt8] = []  // least significant first
    for character in text {
      guard let value = alphabet.value(of: character) else { return nil }
      var carry = Int(value)
      for index in bytes.indices {
        carry += Int(bytes[index]) * 58
        bytes[index] = UInt8(carry & 0xff)
        carry >>= 8
      }
      if carry > 0 { bytes.append(UInt8(carry)) }
    }
    let zeros = text.prefix { $0 == alphabet[0] }.count
    return [UInt8](repeating: 0, count: zeros) + bytes.reversed()
  }
}
