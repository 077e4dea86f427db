/// A value of a TOML document, and the line on which it begins.
public struct TOMLValue: Equatable, Sendable {
  /// What it is.
  public enum Content: Equatable, Sendable {
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
  public let content: Content
  /// The line on which it begins, the first being 1.
  public let line: Int

  /// A value.
  public init(_ content: Content, line: Int) {
    self.content = content
    self.line = line
  }

  /// What it is, in a word for people.
  public var kind: String {
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
public struct TOMLTable: Equatable, Sendable {
  /// A name, the line on which it stands, and its value.
  public struct Entry: Equatable, Sendable {
    /// The name.
    public let key: String
    /// The line of the name; of a table, of its first header.
    public let line: Int
    /// The value.
    public let value: TOMLValue
  }

  /// All of them, in the order in which they first occur.
  public let entries: [Entry]
  private let places: [String: Int]

  init(_ entries: [Entry]) {
    self.entries = entries
    places = Dictionary(
      entries.enumerated().map { ($0.element.key, $0.offset) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The value under a name.
  public subscript(_ key: String) -> TOMLValue? { places[key].map { entries[$0].value } }
}
