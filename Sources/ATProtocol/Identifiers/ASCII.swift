// The classes of ASCII bytes that the grammars are made of, and the two questions they ask of
// spans.

extension UInt8 {
  /// Whether this is one of `A`–`Z` and `a`–`z`.
  var isASCIILetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }

  /// Whether this is one of `a`–`z`.
  var isASCIILowercaseLetter: Bool { self &- UInt8(ascii: "a") < 26 }

  /// Whether this is one of `0`–`9`.
  var isASCIIDigit: Bool { self &- UInt8(ascii: "0") < 10 }

  /// Whether this is a letter or a digit.
  var isASCIIAlphanumeric: Bool { isASCIILetter || isASCIIDigit }
}

extension Span<UInt8> {
  /// The offset of the first `byte` at or after `start`, or the end.
  func end(before byte: UInt8, from start: Int) -> Int {
    var index = start
    while index < count, self[index] != byte { index += 1 }
    return index
  }

  /// The offset of the first byte that differs from `prefix`, or nil if all of `prefix` is there.
  func mismatch(withPrefix prefix: String) -> Int? {
    var index = 0
    for byte in prefix.utf8 {
      guard index < count, self[index] == byte else { return index }
      index += 1
    }
    return nil
  }
}
