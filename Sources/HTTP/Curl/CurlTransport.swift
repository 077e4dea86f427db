/// The transport over libcurl.
///
/// Follows redirections itself, for each of them is a request that has to be allowed. A long body
/// may last as long as it gets on; one that stands still, or
/// next to, ends.
package final class CurlTransport: HTTPTransport {
  /// How many redirections in a row are followed.
  package static let maximumRedirects = 3

  private let loop: CurlLoop
  private let policy: AddressPolicy
  private let settings: CurlSettings
  private let proxies: ProxySettings

  /// A transport as the user set it.
  ///
  /// - Throws: ``TransportError`` if there is no usable libcurl, or an option is not usable.
  package convenience init(_ options: NetworkOptions) throws(TransportError) {
    try self.init(options, policy: try AddressPolicy(options))
  }

  /// A transport with a policy that the options do not have to agree with.
  package init(_ options: NetworkOptions, policy: AddressPolicy) throws(TransportError) {
    let library = try CurlLibrary.forURL("libcurl")
    guard let loop = CurlLoop(library) else {
      throw TransportError(.unavailable("no memory"), url: "libcurl")
    }
    var pins: [HostPin] = []
    for pin in options.hostPins { pins.append(try HostPin(pin)) }
    self.loop = loop
    self.policy = policy
    settings = CurlSettings(
      userAgent: options.userAgent, caFile: options.caFile, resolve: pins.map(\.resolveEntry),
      stallSeconds: max(1, options.stallSeconds), connectSeconds: options.connectSeconds)
    proxies = ProxySettings(pinned: Set(pins.map(\.authority)), observer: options.observer)
  }

  deinit { loop.close() }

  /// Sends a request, and returns when the head of the answer is there.
  ///
  /// If only the rest of a body was asked for and the server answers with another part, or says
  /// that there is none (416), the whole is asked for at once. A redirection that is not followed
  /// is an answer like others.
  ///
  /// - Throws: ``TransportError`` if no answer came; `CancellationError`.
  package func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    var request = request
    var url = try request.target()
    var redirects = 0
    var isRedirected = false
    while true {
      try checkTarget(url, isRedirected: isRedirected)
      var response = try await begin(
        .init(
          request: request, url: url, policy: policy, isRedirected: isRedirected,
          proxy: proxies.proxy(for: url), settings: settings.adapted(to: request)))
      let part = request.asksForPart ? 0 : response.bodyStart(askedFor: request.offset)
      guard let start = part else {
        guard request.offset > 0 else {
          throw TransportError(.malformedAnswer("a part came instead of the whole"), url: "\(url)")
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
      guard redirects <= Self.maximumRedirects else {
        throw TransportError(.tooManyRedirects, url: "\(url)")
      }
      let next: HTTPURL
      do throws(TransportError) {
        next = try url.resolving(location)
      } catch {
        throw TransportError(.refusedRedirect(error.url), url: "\(url)")
      }
      if !next.hasSameOrigin(as: url) {
        isRedirected = true
        request.fields.removeAll { Self.confidential.contains($0.name.lowercased()) }
      }
      url = next
    }
  }

  /// What is for the server that was asked, and for none that it points to.
  private static let confidential: Set<String> = ["authorization", "cookie", "proxy-authorization"]

  /// Refuses what can be seen to be refused before anything is looked up or connected to.
  private func checkTarget(_ url: HTTPURL, isRedirected: Bool) throws(TransportError) {
    guard !policy.permits(url, isRedirected: isRedirected) else { return }
    guard !isRedirected else { throw TransportError(.refusedRedirect("\(url)"), url: "\(url)") }
    let host = url.authority
    // Of a public address over http it is the scheme that is wrong.
    throw TransportError(
      host.isPrivate ? .refusedAddress(host.address.map { "\($0)" } ?? host.host) : .unusableURL,
      url: "\(url)")
  }

  /// Begins a transfer, and returns with the head of its answer.
  private func begin(_ order: CurlTransfer.Order) async throws -> HTTPResponse {
    let transfer = CurlTransfer(order, loop: loop)
    var response = try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { loop.post(.begin(transfer, $0)) }
    } onCancel: {
      transfer.cancel()
    }
    response.body = HTTPBody(transfer.pipe)
    // The event thread lives as long as a body may be read.
    response.body.whenEnded { [self] _ in withExtendedLifetime(self) {} }
    return response
  }
}
