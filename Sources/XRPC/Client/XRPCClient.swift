package import HTTP

/// Calls methods of XRPC on one server, in a session or without one.
package struct XRPCClient: Sendable {
  /// The server's base URL, without a slash at its end.
  package let service: String
  /// The way there.
  package let network: Network
  /// As whom; nil for nobody in particular.
  package let session: Session?

  /// A client.
  ///
  /// - Parameters:
  ///   - service: the server's base URL.
  ///   - network: the way there.
  ///   - session: as whom; its token goes to its own server alone, whatever `service` is.
  package init(service: String, network: Network, session: Session? = nil) {
    self.service = Self.withoutSlash(service)
    self.network = network
    self.session = session
  }

  /// Calls a method that answers with JSON.
  ///
  /// - Throws: ``XRPCError`` if the server refuses or answers with something else;
  ///   ``TransportError`` if no whole answer came; `CancellationError`.
  package func call<Q: XRPCQuery>(_ query: Q) async throws -> Q.Output {
    try await call(query, as: nil)
  }

  /// Calls a method that answers with JSON, once if it has something done: what became of a call
  /// that was not answered is for the caller to find out.
  ///
  /// - Parameters:
  ///   - query: the method.
  ///   - bearer: the token to show instead of the session's.
  ///   - attempts: how often it is tried at most; nil for as often as the user set, or once.
  /// - Throws: as ``call(_:)``.
  package func call<Q: XRPCQuery>(_ query: Q, as bearer: Secret?, attempts: Int? = nil) async throws
    -> Q.Output
  {
    var request = Self.request(query, service)
    if let attempts { request.attempts = attempts }
    let (delivery, body, secrets) = try await deliver(request, for: query, as: bearer) { response in
      try await response.body.collect(upTo: Q.maximumBytes, of: service + "/xrpc/" + query.nsid)
    }
    return try query.read(body, delivery, hiding: secrets)
  }

  /// Calls a method that has something done and answers with nothing, once.
  ///
  /// - Throws: as ``call(_:)``.
  package func perform<P: XRPCProcedure>(_ procedure: P) async throws {
    let request = Self.request(procedure, service)
    let (delivery, body, secrets) = try await deliver(request, for: procedure) { response in
      try await response.body.beginning(maximumErrorBody)
    }
    // Nothing, or an object: the page of a proxy is no answer of the server's.
    guard body.isEmpty || body.first == UInt8(ascii: "{") else {
      throw XRPCError(
        procedure.nsid, delivery, body: body, fault: "it is not JSON", hiding: secrets)
    }
  }

  /// Sends bytes; again if that fails for a reason that may pass.
  ///
  /// - Parameters:
  ///   - upload: the method and what is sent.
  ///   - attempts: how often it is tried at most; nil for as often as the user set.
  /// - Returns: The body of the answer, whose length is limited.
  /// - Throws: as ``call(_:)``.
  @discardableResult
  package func upload<U: XRPCUpload>(_ upload: U, attempts: Int? = nil) async throws -> [UInt8] {
    var request = Self.request(upload, service)
    request.body = upload.body
    request.isStreamed = true
    request.isPrepared = true
    request.patience = U.patience
    request.attempts = attempts
    request.fields.append(("Content-Type", upload.contentType))
    return try await deliver(request, for: upload) { response in
      try await response.body.collect(
        upTo: maximumErrorBody, of: service + "/xrpc/" + upload.nsid)
    }.1
  }

  /// Calls a method that answers with bytes.
  ///
  /// - Parameters:
  ///   - stream: the method.
  ///   - attempts: how often it is tried at most; nil for as often as the user set.
  ///   - isCompressed: whether the answer may be compressed on the way.
  ///   - offset: how much of the body need not be sent again, asked before each attempt.
  ///   - receive: reads the answer; called once more, for another one, if it breaks off on the way.
  /// - Returns: What `receive` returned.
  /// - Throws: ``XRPCError`` if the server refuses; ``TransportError`` if no whole answer came;
  ///   what `receive` throws; `CancellationError`.
  package func stream<S: XRPCStream, Value>(
    _ stream: S, attempts: Int? = nil, isCompressed: Bool = false,
    from offset: () -> UInt64 = { 0 },
    receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    var request = Self.request(stream, service)
    request.acceptsCompression = isCompressed
    request.isStreamed = true
    request.isPrepared = S.isPrepared
    request.isForwarded = S.isForwarded
    request.attempts = attempts
    return try await deliver(request, for: stream, from: offset, receive: receive).1
  }

  /// Calls a method that answers with bytes, and few of them.
  ///
  /// - Throws: what ``stream(_:attempts:isCompressed:from:receive:)`` throws, and
  ///   ``TransportError`` if there are more.
  package func bytes<S: XRPCStream>(_ stream: S, limit: Int) async throws -> [UInt8] {
    try await self.stream(stream) { response in
      try await response.body.collect(upTo: limit, of: service + "/xrpc/" + stream.nsid)
    }
  }

  /// Sends the request for a call, with the session's token if it is for this server, and once more
  /// with another token if that one is over.
  private func deliver<E: XRPCEndpoint, Value>(
    _ request: HTTPRequest, for endpoint: E, as bearer: Secret? = nil,
    from offset: () -> UInt64 = { 0 },
    receive: (HTTPResponse) async throws -> Value
  ) async throws -> (Network.Delivery, Value, secrets: [Secret]) {
    var tokens: [Secret] = []
    while true {
      var authorized = request
      if let bearer {
        tokens.append(bearer)
        authorized.fields.append(("Authorization", "Bearer \(bearer.text)"))
      } else if let session, session.isFor(service) {
        let token = try await session.accessToken()
        tokens.append(token)
        authorized.fields.append(("Authorization", "Bearer \(token.text)"))
      }
      let (delivery, value) = try await network.send(authorized, from: offset, receive: receive)
      if let value {
        if let session, let token = tokens.last { await session.served(token) }
        return (delivery, value, tokens + endpoint.secrets)
      }
      let error = XRPCError(endpoint.nsid, delivery, hiding: tokens + endpoint.secrets)
      guard bearer == nil, let session, tokens.count == 1, Session.isOver(error),
        try await session.renew(instead: tokens[0], isExpired: Session.isExpired(error))
      else { throw error }
    }
  }

  /// The request for a call.
  static func request<E: XRPCEndpoint>(_ endpoint: E, _ service: String) -> HTTPRequest {
    var url = withoutSlash(service) + "/xrpc/" + endpoint.nsid
    for (index, parameter) in endpoint.parameters.enumerated() {
      url += (index == 0 ? "?" : "&") + parameter.name + "=" + percentEncoded(parameter.value)
    }
    var request = HTTPRequest(E.method, url, body: endpoint.input)
    request.fields += endpoint.fields
    if E.method == .post {
      request.followsRedirects = false
      request.hasOwnLimit = E.hasOwnLimit
      // What has something done may have done it, whatever came back.
      request.attempts = E.isRepeatable ? nil : 1
      if !endpoint.input.isEmpty { request.fields.append(("Content-Type", "application/json")) }
    }
    return request
  }

  /// A text as it stands in a query: everything but unreserved characters (RFC 3986, section 2.3)
  /// is written in hexadecimal digits.
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
