/// The receiving of one answer: its head, line by line, and whether its body is whole.
struct Reception {
  private let url: HTTPURL
  /// Whether the answer has a body: to HEAD none is sent, however long the head says it is.
  private let hasBody: Bool
  private var head = ResponseHead()
  private var expected: UInt64?
  private var received: UInt64 = 0

  init(of url: HTTPURL, hasBody: Bool = true) { (self.url, self.hasBody) = (url, hasBody) }

  /// Takes a line of the head, and returns the head with the line that ends it.
  ///
  /// - Throws: ``TransportError`` if the head is malformed.
  mutating func takeLine(_ line: Span<UInt8>) throws(TransportError) -> HTTPResponse? {
    let wasComplete = head.isComplete
    do throws(ResponseHead.Fault) {
      try head.append(line)
    } catch {
      throw TransportError(.malformedAnswer(error.what), url: "\(url)")
    }
    guard head.isComplete, !wasComplete else { return nil }
    let response = HTTPResponse(status: head.status, fields: head.fields, url: url.text)
    expected = hasBody ? response.contentLength : 0
    return response
  }

  /// Notes that bytes of the body have come.
  mutating func takeBody(_ count: Int) { received += UInt64(count) }

  /// How much of the body has come; nil before the head is there.
  var progress: TransportError.Progress? {
    head.isComplete ? .init(received: received, expected: expected) : nil
  }

  /// How much is still to come, if the server has said so.
  var remaining: UInt64? { expected.map { $0 - min($0, received) } }

  /// Checks that nothing is missing, when no more is to come.
  ///
  /// - Throws: ``TransportError`` if the head never ended, or the body is shorter than the head
  ///   says.
  func finish() throws(TransportError) {
    guard head.isComplete else {
      throw TransportError(.cutOff("it has no head"), url: "\(url)")
    }
    if let expected, received < expected {
      throw TransportError(.cutOff("\(received) of \(expected) bytes came"), url: "\(url)")
    }
  }
}
