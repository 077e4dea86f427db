package import IPLD

/// Writes JSON (RFC 8259) piece by piece into a buffer that the caller empties when it likes.
///
/// ```swift
/// var json = JSONWriter(pretty: true)
/// json.beginObject()
/// json.key("records")
/// json.integer(38)
/// json.endObject()
/// json.newline()
/// output.write(json.takeBytes())
/// ```
///
/// What it writes is always JSON: a value where none can stand, or a key outside of an object, is a
/// mistake in the program and stops it. Nothing is sorted and no key is compared with another; both
/// are the caller's.
///
/// Invariants:
/// 1. `open` holds one entry for each array or object that has begun and not ended, the innermost
///    last.
/// 2. `isAfterKey` is true only between a key and its value.
package struct JSONWriter: Sendable {
  /// What has been written and not been taken.
  package private(set) var bytes: [UInt8] = []
  private let isPretty: Bool
  private var open: [(isObject: Bool, isEmpty: Bool)] = []
  private var isAfterKey = false
  /// Whether a value stands at the top, so that no second may follow before a line's end.
  private var isComplete = false

  /// Where to what has been written goes, and is forgotten, whenever it is long.
  private let sink: (@Sendable ([UInt8]) -> Void)?
  private static let longest = 1 << 16

  /// A writer of nothing yet.
  ///
  /// - Parameters:
  ///   - pretty: one line per item, indented by two spaces for each level; otherwise no white space
  ///     at all.
  ///   - sink: receives what has been written whenever an object ends and that is longer than
  ///     64 KiB; nil to keep all of it.
  package init(pretty: Bool = false, sink: (@Sendable ([UInt8]) -> Void)? = nil) {
    (isPretty, self.sink) = (pretty, sink)
  }

  /// Returns what has been written since the last call, and clears it.
  package mutating func takeBytes() -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &bytes)
    return taken
  }

  /// Begins an object; until it ends, keys and values take turns.
  package mutating func beginObject() {
    begin(isObject: true, "{")
  }

  /// Ends the object.
  package mutating func endObject() {
    end(isObject: true, "}")
    if let sink, bytes.count > Self.longest { sink(takeBytes()) }
  }

  /// Begins an array.
  package mutating func beginArray() {
    begin(isObject: false, "[")
  }

  /// Ends the array.
  package mutating func endArray() {
    end(isObject: false, "]")
  }

  /// Writes the key of an object's next value.
  package mutating func key(_ name: String) {
    precondition(open.last?.isObject == true && !isAfterKey, "a key where none is allowed")
    separate()
    appendQuoted(name)
    bytes.append(UInt8(ascii: ":"))
    if isPretty { bytes.append(UInt8(ascii: " ")) }
    isAfterKey = true
  }

  /// Writes a string.
  package mutating func string(_ text: String) {
    beginValue()
    appendQuoted(text)
  }

  /// Writes a string that is at hand as bytes; what is not UTF-8 in it becomes U+FFFD.
  package mutating func string(utf8 text: Span<UInt8>) {
    guard Self.standsForItself(text), Self.isASCII(text) else {
      string(String(decoding: text.array, as: UTF8.self))
      return
    }
    beginValue()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: text)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes the text of a CID.
  package mutating func string(_ cid: CID) {
    beginValue()
    bytes.append(UInt8(ascii: "\""))
    cid.appendText(to: &bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  /// Writes an integer, all its digits, also those that no reader keeps who takes numbers for
  /// floats.
  package mutating func integer(_ number: some BinaryInteger) {
    beginValue()
    bytes.append(contentsOf: number.description.utf8)
  }

  /// Writes a number with a fraction or an exponent: the shortest that reads back as the same
  /// float.
  ///
  /// JSON has no infinities and no NaN; null stands for them.
  package mutating func double(_ number: Double) {
    beginValue()
    bytes.append(contentsOf: (number.isFinite ? number.description : "null").utf8)
  }

  /// Writes true or false.
  package mutating func boolean(_ flag: Bool) {
    beginValue()
    bytes.append(contentsOf: (flag ? "true" : "false").utf8)
  }

  /// Writes null.
  package mutating func null() {
    beginValue()
    bytes.append(contentsOf: "null".utf8)
  }

  /// Ends the line after a whole value; another may follow, as in JSON Lines.
  package mutating func newline() {
    precondition(open.isEmpty && isComplete, "a line ends inside a value")
    bytes.append(UInt8(ascii: "\n"))
    isComplete = false
  }

  private mutating func begin(isObject: Bool, _ bracket: Unicode.Scalar) {
    beginValue()
    bytes.append(UInt8(ascii: bracket))
    open.append((isObject, isEmpty: true))
  }

  private mutating func end(isObject: Bool, _ bracket: Unicode.Scalar) {
    guard let (wasObject, isEmpty) = open.popLast(), wasObject == isObject, !isAfterKey else {
      preconditionFailure("the end of a value that was not opened")
    }
    if isPretty && !isEmpty { appendLineStart() }
    bytes.append(UInt8(ascii: bracket))
  }

  /// Writes the separator before a value, if it needs one.
  private mutating func beginValue() {
    switch open.last?.isObject {
    case false?: separate()
    case true?:
      precondition(isAfterKey, "a value in an object without its key")
      isAfterKey = false
    case nil:
      precondition(!isComplete, "a second value at the top")
      isComplete = true
    }
  }

  /// What stands before an item of an array or a key of an object.
  private mutating func separate() {
    let innermost = open.count - 1
    if !open[innermost].isEmpty { bytes.append(UInt8(ascii: ",")) }
    open[innermost].isEmpty = false
    if isPretty { appendLineStart() }
  }

  private mutating func appendLineStart() {
    bytes.append(UInt8(ascii: "\n"))
    for _ in 0..<open.count * 2 { bytes.append(UInt8(ascii: " ")) }
  }

  private mutating func appendQuoted(_ text: String) {
    let content = text.utf8Span.span
    bytes.append(UInt8(ascii: "\""))
    if Self.standsForItself(content) {
      bytes.append(contentsOf: content)
    } else {
      for scalar in text.unicodeScalars { append(scalar) }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Whether no byte has to be escaped; all are examined, so that many can be at a time.
  private static func standsForItself(_ text: Span<UInt8>) -> Bool {
    var found = false
    for index in 0..<text.count { found = mayBeEscaped(text[index]) || found }
    return !found
  }

  private static func isASCII(_ text: Span<UInt8>) -> Bool {
    var all: UInt8 = 0
    for index in 0..<text.count { all |= text[index] }
    return all < 0x80
  }

  /// Whether a byte belongs to a character that may not stand for itself: one below U+0080, or the
  /// first byte of those above that terminals act on.
  @inline(__always)
  private static func mayBeEscaped(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7f
      || byte == 0xc2 || byte == 0xd8 || byte == 0xe2
  }

  /// Appends a character of a string: quotation mark, backslash and control characters as escapes.
  ///
  /// JSON does not ask for U+007F and above, but terminals act on them.
  private mutating func append(_ scalar: Unicode.Scalar) {
    if scalar.value < 0x80 {
      let byte = UInt8(scalar.value)
      if Self.mayBeEscaped(byte) { appendEscaped(byte) } else { bytes.append(byte) }
    } else if scalar.isTerminalControl {
      appendEscaped(UInt16(scalar.value))
    } else {
      bytes.append(contentsOf: String(Character(scalar)).utf8)
    }
  }

  private mutating func appendEscaped(_ byte: UInt8) {
    bytes.append(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
    case 0x08: bytes.append(UInt8(ascii: "b"))
    case 0x09: bytes.append(UInt8(ascii: "t"))
    case 0x0a: bytes.append(UInt8(ascii: "n"))
    case 0x0c: bytes.append(UInt8(ascii: "f"))
    case 0x0d: bytes.append(UInt8(ascii: "r"))
    default:
      bytes.removeLast()
      appendEscaped(UInt16(byte))
    }
  }

  /// Appends the escape of a UTF-16 code unit, `\uXXXX`.
  private mutating func appendEscaped(_ unit: UInt16) {
    bytes.append(contentsOf: "\\u".utf8)
    for shift in [12, 8, 4, 0] {
      let digit = UInt8(unit >> shift & 0xf)
      bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
    }
  }
}
