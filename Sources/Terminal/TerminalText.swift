internal import ATProtocol
internal import IPLD

/// Bytes of unknown content on their way to a terminal, piece by piece.
///
/// They are read as UTF-8. Control characters other than line feeds and tabs are written as
/// escapes, such as `\u{1b}`, and bytes that are not text as U+FFFD.
package struct TerminalText {
  /// The beginning of an incomplete character: three bytes at most.
  private var beginning: [UInt8] = []

  /// Whether nothing has been appended yet.
  private(set) var isEmpty = true

  /// Whether bytes are text: UTF-8 without NUL, except for a character that is cut off at the end.
  package static func isText(_ bytes: Span<UInt8>) -> Bool {
    let bytes = bytes.array
    let end = endOfLastCharacter(bytes)
    return !bytes.contains(0) && String(validating: bytes[..<end], as: UTF8.self) != nil
  }

  /// The text of all complete characters.
  package mutating func append(_ bytes: Span<UInt8>) -> [UInt8] {
    isEmpty = false
    beginning.append(contentsOf: bytes.array)
    let end = Self.endOfLastCharacter(beginning)
    let shown = Self.visible(beginning[..<end])
    beginning.removeFirst(end)
    return shown
  }

  /// The text of the incomplete character that is left.
  package mutating func finish() -> [UInt8] {
    defer { beginning = [] }
    return Self.visible(beginning[...])
  }

  /// The end of the last character that is not cut off.
  private static func endOfLastCharacter(_ bytes: [UInt8]) -> Int {
    for length in 1...3 where length <= bytes.count {
      let byte = bytes[bytes.count - length]
      if byte & 0xc0 == 0x80 { continue }
      let expected = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
      return expected > length ? bytes.count - length : bytes.count
    }
    return bytes.count
  }

  private static func visible(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var shown: [UInt8] = []
    shown.reserveCapacity(bytes.count)
    for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
      if scalar.isTerminalControl, scalar != "\n", scalar != "\t" {
        shown += "\\u{\(String(scalar.value, radix: 16))}".utf8
      } else {
        shown += String(Character(scalar)).utf8
      }
    }
    return shown
  }
}
