import IPLD

/// The strings of JSON.
extension JSONParser {
  /// The string whose quotation mark is the next byte.
  mutating func readString() throws(JSONError) -> String {
    offset += 1
    var start = offset
    var text: [UInt8] = []
    while offset < bytes.count {
      switch bytes[offset] {
      case UInt8(ascii: "\""):
        defer { offset += 1 }
        if text.isEmpty { return String(decoding: bytes[start..<offset], as: UTF8.self) }
        return String(decoding: text + bytes[start..<offset], as: UTF8.self)
      case UInt8(ascii: "\\"):
        text.append(contentsOf: bytes[start..<offset])
        text.append(contentsOf: String(try readEscape()).utf8)
        start = offset
      case 0x00..<0x20: throw error(.controlCharacter)
      default: offset += 1
      }
    }
    throw error(.truncated)
  }

  private mutating func readEscape() throws(JSONError) -> Unicode.Scalar {
    let start = offset
    guard start + 1 < bytes.count else { throw JSONError(.truncated, offset: bytes.count) }
    offset += 2
    switch bytes[start + 1] {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{08}"
    case UInt8(ascii: "f"): return "\u{0c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): break
    default: throw JSONError(.malformedEscape, offset: start)
    }
    let unit = try readHex(of: start)
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard UTF16.isLeadSurrogate(unit), bytes[offset...].starts(with: #"\u"#.utf8) else {
      throw JSONError(.loneSurrogate, offset: start)
    }
    offset += 2
    let second = try readHex(of: offset - 2)
    guard UTF16.isTrailSurrogate(second) else { throw JSONError(.loneSurrogate, offset: start) }
    return UTF16.decode(UTF16.EncodedScalar([unit, second]))
  }

  /// Four hexadecimal digits.
  private mutating func readHex(of start: Int) throws(JSONError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard offset < bytes.count else { throw error(.truncated) }
      guard let value = Character(Unicode.Scalar(bytes[offset])).hexDigitValue else {
        throw JSONError(.malformedEscape, offset: start)
      }
      unit = unit << 4 | UInt16(value)
      offset += 1
    }
    return unit
  }
}

/// The numbers of JSON.
extension JSONParser {
  /// The largest distance from zero up to which every integer is a float: beyond it, 1e300 is not
  /// meant as an integer.
  private static let exactLimit: Double = 9_007_199_254_740_992

  /// The number that begins with the next byte.
  mutating func readNumber() throws(JSONError) -> IPLDValue {
    let start = offset
    var isInteger = true
    _ = skip("-")
    if skip("0") {
      if offset < bytes.count, bytes[offset].isASCIIDigit {
        throw JSONError(.malformedNumber, offset: start)
      }
    } else {
      try readDigits(from: start)
    }
    if skip(".") {
      isInteger = false
      try readDigits(from: start)
    }
    if skip("e") || skip("E") {
      isInteger = false
      _ = skip("+") || skip("-")
      try readDigits(from: start)
    }
    let text = String(decoding: bytes[start..<offset], as: UTF8.self)
    if isInteger {
      guard let number = Int64(text) else { throw JSONError(.integerOutOfRange, offset: start) }
      return .integer(Int128(number))
    }
    guard let number = Double(text), number.isFinite else {
      throw JSONError(.numberOutOfRange, offset: start)
    }
    if number.magnitude <= Self.exactLimit, let integer = Int128(exactly: number) {
      return .integer(integer)
    }
    return .float(number)
  }

  /// Steps over a character, if it is the next one.
  private mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard offset < bytes.count, bytes[offset] == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  private mutating func readDigits(from start: Int) throws(JSONError) {
    guard offset < bytes.count else { throw error(.truncated) }
    guard bytes[offset].isASCIIDigit else { throw JSONError(.malformedNumber, offset: start) }
    while offset < bytes.count, bytes[offset].isASCIIDigit { offset += 1 }
  }
}
