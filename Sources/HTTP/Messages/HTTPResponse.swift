/// An answer: its head, and its body as it arrives.
package struct HTTPResponse: Sendable {
  /// The status code.
  package var status: Int
  /// The header fields, names in lower case, in the order they came.
  package var fields: [(name: String, value: String)]
  /// Where the answer came from, after redirections.
  package var url: String
  /// Where in the whole body ``body`` begins: 0, or where the request asked it to.
  package var offset: UInt64 = 0
  /// The body, decompressed.
  package var body: HTTPBody

  /// An answer.
  package init(
    status: Int, fields: [(name: String, value: String)] = [], url: String,
    body: HTTPBody = HTTPBody([])
  ) {
    (self.status, self.fields, self.url, self.body) = (status, fields, url, body)
  }

  /// The first field of this name, in lower case.
  package subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Whether the status means success.
  package var isSuccess: Bool { 200..<300 ~= status }

  /// How long the body is going to be, in bytes; nil if the server does not say, or if it comes
  /// compressed.
  package var contentLength: UInt64? {
    guard self["content-encoding"] == nil else { return nil }
    return self["content-length"].flatMap { UInt64($0) }
  }

  /// Where the answer points instead of answering; nil if it does not.
  var redirection: String? {
    [301, 302, 303, 307, 308].contains(status) ? self["location"] : nil
  }

  /// Where in the whole body the answer's begins that was asked to begin at `offset`; nil if the
  /// whole has to be requested.
  func bodyStart(askedFor offset: UInt64) -> UInt64? {
    switch status {
    case 206:
      // Also a part that was not asked for is the whole if it begins at 0: whether it ends too
      // early the content tells.
      self["content-range"].flatMap { ContentRange($0) }?.first == offset ? offset : nil
    case 416: offset == 0 ? 0 : nil
    default: 0
    }
  }
}
