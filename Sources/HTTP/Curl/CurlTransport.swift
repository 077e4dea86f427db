/// The transport over libcurl.
///
/// Follows redirections itself, because each of them is a request that has to be allowed. A long
/// body may take any time while bytes arrive; a stalled or nearly stalled transfer ends.
package final class CurlTransport: HTTPTransport {
  /// How many redirections in a row are followed.
  package static let maximumRedirects = 3

  private let loop: CurlLoop
  private let rules: ConnectionRules

  /// A transport as the user set it.
  ///
  /// - Throws: ``TransportError`` if there is no usable libcurl, or an option is not usable.
  package convenience init(_ options: NetworkOptions) throws(TransportError) {
    try self.init(options, policy: try AddressPolicy(options))
  }

  /// A transport with a policy that the options do not have to agree with.
  package init(_ options: NetworkOptions, policy: AddressPolicy) throws(TransportError) {
    let library = try CurlLibrary.forURL("libcurl")
    rules = try ConnectionRules(options, policy: policy)
    loop = try CurlLoop(library)
  }

  deinit { loop.close() }

  /// Sends a request, and returns when the head of the answer is there.
  ///
  /// If only the rest of a body was requested and the server answers with another part, or says
  /// that there is none (416), the whole is requested at once. A redirection that is not followed
  /// is an ordinary answer.
  ///
  /// - Throws: ``TransportError`` if no answer came; `CancellationError`.
  package func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    var request = request
    var url = try request.target()
    var redirects = 0
    var isRedirected = request.isPointedTo
    while true {
      var target = try rules.target(url, isRedirected: isRedirected)
      target.settings = target.settings.adapted(to: request)
      var response = try await begin(CurlTransfer(request, target, loop: loop))
      let part = request.asksForPart ? 0 : response.bodyStart(askedFor: request.offset)
      guard let start = part else {
        guard request.offset > 0 else {
          throw target.error(
            .malformedAnswer("the server sent a part, but the whole was requested"))
        }
        request.offset = 0
        continue
      }
      response.offset = start
      guard request.followsRedirects, request.method == .get, let location = response.redirection
      else { return response }
      // Read to its end, its connection can be used again.
      _ = try await response.body.beginning(maximumErrorBody)
      redirects += 1
      guard redirects <= Self.maximumRedirects else { throw target.error(.tooManyRedirects) }
      let next: HTTPURL
      do throws(TransportError) {
        next = try HTTPURL(location, relativeTo: url)
      } catch {
        throw target.error(.refusedRedirect(error.url))
      }
      if !next.hasSameOrigin(as: url) {
        isRedirected = true
        request.fields.removeAll { Self.confidential.contains($0.name.lowercased()) }
      }
      url = next
    }
  }

  /// The header fields for the server that was asked, and for no server to which it redirects.
  private static let confidential: Set<String> = ["authorization", "cookie", "proxy-authorization"]

  /// Begins a transfer, and returns with the head of its answer.
  private func begin(_ transfer: CurlTransfer) async throws -> HTTPResponse {
    var response = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { loop.post(.begin(transfer, $0)) }
    } onCancel: {
      transfer.cancel()
    }
    response.body = HTTPBody(transfer.pipe)
    // The event thread lives as long as a body may be read.
    transfer.pipe.whenEnded { [self] _ in withExtendedLifetime(self) {} }
    return response
  }
}
