/// A place in the bytes of a document, and the characters of TOML that are read there.
struct TOMLScanner {
  private let bytes: [UInt8]
  private(set) var index = 0
  private(set) var line = 1

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The byte here; nil at the end.
  var current: UInt8? { index < bytes.count ? bytes[index] : nil }

  /// The byte that stands this many places further on.
  func peek(_ offset: Int) -> UInt8? {
    index + offset < bytes.count ? bytes[index + offset] : nil
  }

  /// Advances by one byte.
  mutating func advance() {
    if current == UInt8(ascii: "\n") { line += 1 }
    index += 1
  }

  /// Skips a byte, if it stands here.
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard current == UInt8(ascii: character) else { return false }
    advance()
    return true
  }

  /// Whether three of these stand here.
  func isTriple(_ quote: UInt8) -> Bool {
    current == quote && peek(1) == quote && peek(2) == quote
  }

  func error(_ reason: TOMLError.Reason) -> TOMLError { TOMLError(reason, line: line) }

  // MARK: Between the values

  /// Skips blanks and tabs.
  mutating func skipBlanks() {
    while current == UInt8(ascii: " ") || current == UInt8(ascii: "\t") { advance() }
  }

  /// Skips the end of a line, if it is here.
  mutating func takeLineEnd() -> Bool {
    if take("\n") { return true }
    guard current == UInt8(ascii: "\r"), peek(1) == UInt8(ascii: "\n") else { return false }
    advance()
    advance()
    return true
  }

  /// Skips a comment, if one begins here.
  mutating func skipComment() throws(TOMLError) {
    guard take("#") else { return }
    while let byte = current, byte != UInt8(ascii: "\n") {
      if byte == UInt8(ascii: "\r"), peek(1) == UInt8(ascii: "\n") { return }
      try refuseControl(byte)
      advance()
    }
  }

  /// Skips everything that may stand between the values of a list.
  mutating func skipSpace() throws(TOMLError) {
    while true {
      skipBlanks()
      try skipComment()
      guard takeLineEnd() else { return }
    }
  }

  /// Skips the rest of a line, which may be a comment.
  mutating func endLine() throws(TOMLError) {
    skipBlanks()
    try skipComment()
    guard current == nil || takeLineEnd() else { throw error(.expected("the end of the line")) }
  }

  /// Refuses a control character, tabs aside.
  func refuseControl(_ byte: UInt8) throws(TOMLError) {
    if (byte < 0x20 && byte != UInt8(ascii: "\t")) || byte == 0x7f {
      throw error(.controlCharacter)
    }
  }

  // MARK: Words

  /// Reads characters as long as they are of these.
  mutating func word(_ isPart: (UInt8) -> Bool) -> String {
    let start = index
    while let byte = current, isPart(byte) { advance() }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  /// Whether a byte may be in a key without quotation marks.
  static func isBare(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
