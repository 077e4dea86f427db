internal import IPLD

/// Lines of results that are assembled as bytes: there may be millions.
package struct OutputLines {
  /// What has not been printed yet.
  package var bytes: [UInt8] = []

  /// Starts without lines.
  package init() {}

  /// Adds text of the command itself.
  package mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
  }

  /// Adds text from elsewhere, which must not control the terminal.
  package mutating func append(visible text: String) {
    let utf8 = text.utf8
    if utf8.allSatisfy(Self.isPlain) {
      bytes.append(contentsOf: utf8)
    } else {
      bytes.append(contentsOf: Console.visible(text, keepingLines: false).utf8)
    }
  }

  /// Adds text from elsewhere, given as bytes.
  package mutating func append(visible text: [UInt8]) {
    if text.allSatisfy(Self.isPlain) {
      bytes.append(contentsOf: text)
    } else {
      append(visible: String(decoding: text, as: UTF8.self))
    }
  }

  /// Adds a size.
  package mutating func append(byteCount: UInt64) {
    // Most records are short.
    guard byteCount < 1000 else {
      bytes.append(contentsOf: Quantity.bytes(byteCount).utf8)
      return
    }
    if byteCount >= 100 { bytes.append(0x30 + UInt8(byteCount / 100)) }
    if byteCount >= 10 { bytes.append(0x30 + UInt8(byteCount / 10 % 10)) }
    bytes.append(0x30 + UInt8(byteCount % 10))
    append(" B")
  }

  private static func isPlain(_ byte: UInt8) -> Bool { 0x20..<0x7f ~= byte }

  /// Prints the lines so far, if they are many.
  package mutating func printIfMany() {
    if bytes.count > 1 << 15 { print() }
  }

  /// Prints the lines so far.
  package mutating func print() {
    let lines = bytes
    Console.print(lines.span)
    bytes.removeAll(keepingCapacity: true)
  }
}
