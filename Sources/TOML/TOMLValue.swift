/// A value of a TOML document, and the line on which it begins.
package struct TOMLValue: Equatable, Sendable {
  /// What it is.
  package enum Content: Equatable, Sendable {
    /// Text.
    case string(String)
    /// A whole number.
    case integer(Int64)
    /// A number with a decimal point, `inf` or `nan`.
    case float(Double)
    /// `true` or `false`.
    case boolean(Bool)
    /// Values in their order.
    case array([TOMLValue])
    /// Values under names.
    case table(TOMLTable)
  }

  /// What it is.
  package let content: Content
  /// The line on which it begins, the first being 1.
  package let line: Int

  /// A value.
  package init(_ content: Content, line: Int) {
    self.content = content
    self.line = line
  }

  /// What it is, in a word for people.
  package var kind: String {
    switch content {
    case .string: "a text"
    case .integer: "a whole number"
    case .float: "a number"
    case .boolean: "true or false"
    case .array: "a list"
    case .table: "a table"
    }
  }
}

/// Values under names, in the order of the document.
package struct TOMLTable: Equatable, Sendable {
  /// A name, the line on which it stands, and its value.
  package struct Entry: Equatable, Sendable {
    /// The name.
    package let key: String
    /// The line of the name; of a table, of its first header.
    package let line: Int
    /// The value.
    package let value: TOMLValue
  }

  /// All of them, in the order in which they first occur.
  package let entries: [Entry]
  private let places: [String: Int]

  init(_ entries: [Entry]) {
    self.entries = entries
    places = Dictionary(
      entries.enumerated().map { ($0.element.key, $0.offset) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The value under a name.
  package subscript(_ key: String) -> TOMLValue? { places[key].map { entries[$0].value } }
}
