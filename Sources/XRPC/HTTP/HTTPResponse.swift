/// The head of an answer: what a server says before the body.
public struct HTTPResponse: Sendable {
  /// The status code.
  public var status: Int
  /// The header fields, names in lower case, in the order they came.
  public var fields: [(name: String, value: String)]
  /// Where the answer came from, after redirections.
  public var url: String

  /// An answer's head.
  public init(status: Int, fields: [(name: String, value: String)] = [], url: String) {
    self.status = status
    self.fields = fields
    self.url = url
  }

  /// The first field of this name, in lower case.
  public subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Whether the status is one of success.
  public var isSuccess: Bool { 200..<300 ~= status }

  /// How long the body is going to be, in bytes; nil if the server does not say, or if it comes compressed.
  public var contentLength: UInt64? {
    guard self["content-encoding"] == nil else { return nil }
    return self["content-length"].flatMap { UInt64($0) }
  }
}
