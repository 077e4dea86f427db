/// Carries requests to servers and answers back.
///
/// ``CurlTransport`` is the real one.
package protocol HTTPTransport: Sendable {
  /// Sends a request, and returns when the head of the answer is there.
  ///
  /// The body arrives while ``HTTPResponse/body`` is read. Letting go of the body, or cancelling
  /// the task, ends the transfer.
  ///
  /// - Throws: ``TransportError`` if no answer came; `CancellationError`.
  func send(_ request: HTTPRequest) async throws -> HTTPResponse
}

/// How many bytes are read of the body of an answer other than a success.
package let maximumErrorBody = 16 << 10
