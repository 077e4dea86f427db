/// Calls methods of XRPC on one server, as somebody or as nobody in particular.
public struct XRPCClient: Sendable {
  /// The server's base URL, without a slash at its end.
  public let service: String
  /// The way there.
  public let network: Network
  /// As whom; nil for nobody in particular.
  public let session: Session?

  /// A client.
  ///
  /// - Parameters:
  ///   - service: the server's base URL.
  ///   - network: the way there.
  ///   - session: as whom; its token goes to its own server alone, whatever `service` is.
  public init(service: String, network: Network, session: Session? = nil) {
    self.service = Self.withoutSlash(service)
    self.network = network
    self.session = session
  }

  /// Calls a method that answers with JSON.
  ///
  /// - Throws: ``XRPCError`` if the server refuses or answers with something else; ``TransportError`` if no whole answer came; `CancellationError`.
  public func call<Q: XRPCQuery>(_ query: Q) async throws -> Q.Output {
    let sink = DocumentSink(limit: Q.maximumBytes, url: service + "/xrpc/" + Q.nsid)
    let (delivery, secrets) = try await deliver(
      query, acceptsCompression: true, isStreamed: false, to: sink)
    return try Q.read(sink.bytes, delivery, hiding: secrets)
  }

  /// Calls a method that answers with bytes, and lets them flow into a sink.
  ///
  /// What is tried again goes into the same sink, from its `resumableOffset` on if the server can do that.
  ///
  /// - Parameters:
  ///   - stream: the method.
  ///   - sink: where the bytes go.
  ///   - attempts: how often it is tried at most; nil for as often as the user set.
  /// - Returns: The head of the answer.
  /// - Throws: ``XRPCError`` if the server refuses; ``TransportError`` if no whole answer came; what the sink throws; `CancellationError`.
  public func stream<S: XRPCStream>(
    _ stream: S, into sink: any ResponseSink, attempts: Int? = nil
  ) async throws -> HTTPResponse {
    try await deliver(
      stream, acceptsCompression: S.acceptsCompression, isStreamed: true, attempts: attempts,
      to: sink
    ).0.response
  }

  /// Calls a method that answers with bytes, and few of them.
  ///
  /// - Throws: what ``stream(_:into:attempts:)`` throws.
  public func bytes<S: XRPCStream>(_ stream: S, limit: Int) async throws -> [UInt8] {
    let sink = DocumentSink(limit: limit, url: service + "/xrpc/" + S.nsid)
    _ = try await self.stream(stream, into: sink)
    return sink.bytes
  }

  /// Sends the request for a call, with the session's token if it is for this server, and once more with another token if that one is over.
  private func deliver<E: XRPCEndpoint>(
    _ endpoint: E, acceptsCompression: Bool, isStreamed: Bool, attempts: Int? = nil,
    to sink: any ResponseSink
  ) async throws -> (Network.Delivery, secrets: [Secret]) {
    var request = Self.request(endpoint, service)
    request.acceptsCompression = acceptsCompression
    request.isStreamed = isStreamed
    var tokens: [Secret] = []
    while true {
      var authorized = request
      if let session, session.isFor(service) {
        let token = try await session.accessToken()
        tokens.append(token)
        authorized.fields.append(("Authorization", "Bearer \(token.text)"))
      }
      let delivery = try await network.send(authorized, to: sink, attempts: attempts)
      if delivery.response.isSuccess {
        if let session, let token = tokens.last { await session.served(token) }
        return (delivery, tokens)
      }
      let error = XRPCError(E.nsid, delivery, hiding: tokens)
      guard let session, tokens.count == 1, Session.isOver(error),
        try await session.renew(instead: tokens[0], isExpired: Session.isExpired(error))
      else { throw error }
    }
  }

  /// The request for a call.
  static func request<E: XRPCEndpoint>(_ endpoint: E, _ service: String) -> HTTPRequest {
    var url = withoutSlash(service) + "/xrpc/" + E.nsid
    for (index, parameter) in endpoint.parameters.enumerated() {
      url += (index == 0 ? "?" : "&") + parameter.name + "=" + percentEncoded(parameter.value)
    }
    var request = HTTPRequest(E.method, url, body: endpoint.input)
    if E.method == .post {
      request.followsRedirects = false
      if !request.body.isEmpty { request.fields.append(("Content-Type", "application/json")) }
    }
    return request
  }

  /// A text as it stands in a query: everything but unreserved characters (RFC 3986, section 2.3) is written in hexadecimal digits.
  static func percentEncoded(_ text: String) -> String {
    var encoded: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        encoded.append(byte)
      default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  private static func withoutSlash(_ url: String) -> String {
    url.hasSuffix("/") ? String(url.dropLast()) : url
  }
}
