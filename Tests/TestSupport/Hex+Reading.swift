/// A text that a test or a vector gives as hexadecimal digits, and that is not.
package struct NotHexadecimal: Error, CustomStringConvertible {
  /// The text.
  package let text: String

  /// What a person reads.
  package var description: String { "not hexadecimal: \(text)" }
}

extension [UInt8] {
  /// The bytes that `text` gives as pairs of hexadecimal digits; blanks between pairs are skipped.
  package init(hex text: String) throws {
    let digits = text.utf8.filter { $0 != UInt8(ascii: " ") }
    guard digits.count.isMultiple(of: 2) else { throw NotHexadecimal(text: text) }
    self = []
    reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Self.value(ofDigit: digits[index]),
        let low = Self.value(ofDigit: digits[index + 1])
      else { throw NotHexadecimal(text: text) }
      append(high << 4 | low)
    }
  }

  private static func value(ofDigit character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
