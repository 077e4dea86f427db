/// A TOML 1.0 document, read strictly: everything but dates and times, which are refused.
///
/// Bytes become a table, or an error that names the line. Length and nesting have limits, so that
/// neither memory nor the stack grows with a hostile file.
package struct TOMLDocument: Sendable {
  /// The most bytes that are read; settings files have a few hundred.
  package static let maximumLength = 1 << 18
  /// How deep keys, lists and tables may nest.
  package static let maximumDepth = 16

  /// The names outside of all tables, and the tables.
  package let root: TOMLTable

  /// Reads a document.
  ///
  /// - Throws: ``TOMLError``.
  package init(_ bytes: [UInt8]) throws(TOMLError) {
    guard bytes.count <= Self.maximumLength else { throw TOMLError(.tooLong, line: 1) }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw TOMLError(.notUTF8, line: Self.firstLineNotUTF8(bytes))
    }
    var parser = TOMLParser(bytes)
    root = try parser.parse()
  }

  /// The first line that is not UTF-8: a line feed is never part of another character.
  private static func firstLineNotUTF8(_ bytes: [UInt8]) -> Int {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    return (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0) + 1
  }
}
