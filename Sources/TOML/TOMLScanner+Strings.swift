extension TOMLScanner {
  private static let quote = UInt8(ascii: "\"")
  private static let apostrophe = UInt8(ascii: "'")

  /// Whether a text begins here.
  var isAtString: Bool { current == Self.quote || current == Self.apostrophe }

  /// Reads a text, with quotation marks or apostrophes around it, one or three on each side.
  mutating func string() throws(TOMLError) -> String {
    guard let mark = current else { throw error(.expected("a text")) }
    return isTriple(mark) ? try longString(mark) : try shortString()
  }

  /// Reads a text that ends on its line.
  mutating func shortString() throws(TOMLError) -> String {
    let mark = current
    let start = line
    advance()
    var text: [UInt8] = []
    while let byte = current, byte != UInt8(ascii: "\n") {
      if byte == mark {
        advance()
        return String(decoding: text, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\"), mark == Self.quote {
        try escape(into: &text)
      } else {
        try refuseControl(byte)
        text.append(byte)
        advance()
      }
    }
    throw TOMLError(.unterminatedString, line: start)
  }

  /// Reads a text that may go over several lines.
  private mutating func longString(_ mark: UInt8) throws(TOMLError) -> String {
    let start = line
    for _ in 0..<3 { advance() }
    // A line end right after the marks does not count.
    _ = takeLineEnd()
    var text: [UInt8] = []
    while let byte = current {
      if isTriple(mark) {
        // Up to two of the marks may be the end of the text itself.
        var extra = 0
        while extra < 2, peek(3 + extra) == mark { extra += 1 }
        text += [UInt8](repeating: mark, count: extra)
        for _ in 0..<3 + extra { advance() }
        return String(decoding: text, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\"), mark == Self.quote {
        if try !joinLines() { try escape(into: &text) }
      } else if takeLineEnd() {
        text.append(UInt8(ascii: "\n"))
      } else {
        try refuseControl(byte)
        text.append(byte)
        advance()
      }
    }
    throw TOMLError(.unterminatedString, line: start)
  }

  /// Skips a backslash at the end of a line, and the white space after it; false if it is not at
  /// the end.
  private mutating func joinLines() throws(TOMLError) -> Bool {
    var ahead = self
    ahead.advance()
    ahead.skipBlanks()
    guard ahead.takeLineEnd() else { return false }
    repeat { ahead.skipBlanks() } while ahead.takeLineEnd()
    self = ahead
    return true
  }

  /// Reads an escape after its backslash.
  private mutating func escape(into text: inout [UInt8]) throws(TOMLError) {
    advance()
    guard let byte = current else { throw error(.malformedEscape) }
    switch Unicode.Scalar(byte) {
    case "b": text.append(0x08)
    case "t": text.append(0x09)
    case "n": text.append(0x0a)
    case "f": text.append(0x0c)
    case "r": text.append(0x0d)
    case "\"", "\\": text.append(byte)
    case "u": return try scalar(digits: 4, into: &text)
    case "U": return try scalar(digits: 8, into: &text)
    default: throw error(.malformedEscape)
    }
    advance()
  }

  /// Reads a scalar in hexadecimal digits, from the letter before them.
  private mutating func scalar(digits count: Int, into text: inout [UInt8]) throws(TOMLError) {
    var value: UInt32 = 0
    for _ in 0..<count {
      advance()
      guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue,
        byte < 0x80
      else { throw error(.malformedEscape) }
      value = value << 4 | UInt32(digit)
    }
    guard let scalar = Unicode.Scalar(value) else { throw error(.malformedEscape) }
    text += Array(String(Character(scalar)).utf8)
    advance()
  }
}
