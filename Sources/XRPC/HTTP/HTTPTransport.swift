/// What carries requests to servers and answers back.
///
/// ``CurlTransport`` is the real one.
public protocol HTTPTransport: Sendable {
  /// Sends a request and lets the body of a successful answer flow into a sink.
  ///
  /// The body of any other answer is kept, up to ``maximumErrorBody`` bytes, and is returned. Cancelling the task ends the transfer.
  ///
  /// - Parameters:
  ///   - request: what is asked.
  ///   - sink: where the body goes. If its `resumableOffset` is not 0 only the rest is asked for (`Range`).
  /// - Returns: The head, and for an answer that is not one of success (2xx) its body, or as much of it as is kept.
  /// - Throws: ``TransportError`` if no whole answer came; what the sink threw; `CancellationError`.
  func send(_ request: HTTPRequest, to sink: any ResponseSink) async throws -> (
    HTTPResponse, errorBody: [UInt8]
  )
}

/// How many bytes are kept of the body of an answer that is not one of success.
public let maximumErrorBody = 16 << 10
