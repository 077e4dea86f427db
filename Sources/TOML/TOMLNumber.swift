/// The values that are written without quotation marks.
enum TOMLNumber {
  /// What a word is.
  static func content(_ word: String) throws(Fault) -> TOMLValue.Content {
    switch word {
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "inf", "+inf": return .float(.infinity)
    case "-inf": return .float(-.infinity)
    case "nan", "+nan", "-nan": return .float(.nan)
    default: break
    }
    let bytes = Array(word.utf8)
    if let radix = radix(bytes) {
      return .integer(try integer(bytes[2...], sign: "", radix: radix))
    }
    let isSigned = bytes.first == UInt8(ascii: "-") || bytes.first == UInt8(ascii: "+")
    let sign = bytes.first == UInt8(ascii: "-") ? "-" : ""
    let digits = bytes[(isSigned ? 1 : 0)...]
    if isRun(digits, of: isDigit) {
      guard digits.count == 1 || digits.first != UInt8(ascii: "0") else { throw .malformed }
      return .integer(try integer(digits, sign: sign, radix: 10))
    }
    if let value = float(digits) { return .float(sign.isEmpty ? value : -value) }
    throw isDate(bytes) ? .date : .malformed
  }

  /// Why a word is not a value.
  enum Fault: Error { case malformed, tooLarge, date }

  private static func isDigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
  }

  /// Whether bytes are all of a kind, at least one, with single underscores between two of them.
  private static func isRun(_ bytes: ArraySlice<UInt8>, of isKind: (UInt8) -> Bool) -> Bool {
    bytes.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
      .allSatisfy { !$0.isEmpty && $0.allSatisfy(isKind) }
  }

  private static func radix(_ bytes: [UInt8]) -> Int? {
    guard bytes.count > 2, bytes[0] == UInt8(ascii: "0") else { return nil }
    switch bytes[1] {
    case UInt8(ascii: "x"): return 16
    case UInt8(ascii: "o"): return 8
    case UInt8(ascii: "b"): return 2
    default: return nil
    }
  }

  private static func integer(
    _ digits: ArraySlice<UInt8>, sign: String, radix: Int
  ) throws(Fault) -> Int64 {
    func isKind(_ byte: UInt8) -> Bool {
      Int(String(Character(Unicode.Scalar(byte))), radix: radix) != nil
        && byte != UInt8(ascii: "-") && byte != UInt8(ascii: "+")
    }
    guard isRun(digits, of: isKind) else { throw .malformed }
    guard let value = Int64(sign + plain(digits), radix: radix) else { throw .tooLarge }
    return value
  }

  /// The text without underscores.
  private static func plain(_ bytes: ArraySlice<UInt8>) -> String {
    String(decoding: bytes.filter { $0 != UInt8(ascii: "_") }, as: UTF8.self)
  }

  /// A number with a fraction, an exponent or both; nil if it is not one.
  private static func float(_ bytes: ArraySlice<UInt8>) -> Double? {
    var mantissa = bytes
    if let mark = bytes.firstIndex(where: { $0 | 0x20 == UInt8(ascii: "e") }) {
      mantissa = bytes[..<mark]
      var exponent = bytes[(mark + 1)...]
      if let sign = exponent.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
        exponent = exponent.dropFirst()
      }
      guard isRun(exponent, of: isDigit) else { return nil }
    }
    let parts = mantissa.split(
      separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ isRun($0, of: isDigit) }), let whole = parts.first,
      whole.count == 1 || whole.first != UInt8(ascii: "0")
    else { return nil }
    return Double(plain(bytes))
  }

  /// Whether it begins as a date or a time does.
  private static func isDate(_ bytes: [UInt8]) -> Bool {
    (bytes.count >= 5 && bytes.prefix(4).allSatisfy(isDigit) && bytes[4] == UInt8(ascii: "-"))
      || (bytes.count >= 3 && bytes.prefix(2).allSatisfy(isDigit) && bytes[2] == UInt8(ascii: ":"))
  }
}
