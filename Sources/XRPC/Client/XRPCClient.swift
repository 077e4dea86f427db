package import HTTP

/// Calls methods of XRPC on one server, in a session or without one.
package struct XRPCClient: Sendable {
  /// The server's base URL, without a slash at its end.
  package let service: String
  /// The way there.
  package let network: Network
  /// The session of the account; nil without a login.
  package let session: Session?
  /// The password of the server's operator; nil unless requests are made as that.
  private let admin: Secret?

  /// A client.
  ///
  /// - Parameters:
  ///   - service: the server's base URL.
  ///   - network: the way there.
  ///   - session: the account's session; its token goes to its own server only, whatever `service`
  ///     is.
  ///   - admin: the password of the operator of `service`, who sees what its accounts' owners see.
  package init(
    service: String, network: Network, session: Session? = nil, admin: Secret? = nil
  ) {
    self.service = service.hasSuffix("/") ? String(service.dropLast()) : service
    self.network = network
    (self.session, self.admin) = (session, admin)
  }

  /// Calls a method that answers with JSON.
  ///
  /// - Parameters:
  ///   - query: the method.
  ///   - bearer: the token to show instead of the session's.
  ///   - attempts: how often it is tried at most; nil for as often as the user set, or once for a
  ///     procedure: the caller has to find out what became of an unanswered call.
  /// - Throws: ``XRPCError`` if the server refuses or answers with something else;
  ///   ``TransportError`` if no whole answer came; `CancellationError`.
  package func call<Output>(
    _ query: XRPCQuery<Output>, as bearer: Secret? = nil, attempts: Int? = nil
  ) async throws -> Output {
    let call = query.call
    let (delivery, body, secrets) = try await deliver(call, attempts, as: bearer) { response in
      try await response.body.collect(
        upTo: XRPCQuery<Output>.maximumBytes, of: call.url(on: service))
    }
    return try query.read(body, delivery, hiding: secrets)
  }

  /// Calls a procedure that answers with nothing.
  ///
  /// - Throws: as `call(_:as:attempts:)`.
  package func perform(_ call: XRPCCall, attempts: Int? = nil) async throws {
    let (delivery, body, secrets) = try await deliver(call, attempts) { response in
      try await response.body.beginning(maximumErrorBody)
    }
    // Nothing, or an object: the page of a proxy is not an answer of the server's.
    guard body.isEmpty || body.first == UInt8(ascii: "{") else {
      throw XRPCError(call, delivery, body: body, fault: "it is not JSON", hiding: secrets)
    }
  }

  /// Calls a method that answers with bytes.
  ///
  /// - Parameters:
  ///   - call: the method.
  ///   - attempts: how often it is tried at most; nil for as often as the user set.
  ///   - isCompressed: whether the answer may be compressed on the way.
  ///   - offset: how much of the body need not be sent again, asked before each attempt.
  ///   - receive: reads the answer; called once more, for another one, if it breaks off on the way.
  /// - Returns: What `receive` returned.
  /// - Throws: ``XRPCError`` if the server refuses; ``TransportError`` if no whole answer came;
  ///   what `receive` throws; `CancellationError`.
  package func stream<Value>(
    _ call: XRPCCall, attempts: Int? = nil, isCompressed: Bool = false,
    from offset: () -> UInt64 = { 0 }, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    try await deliver(
      call, attempts, from: offset,
      changing: {
        $0.acceptsCompression = isCompressed
        $0.isStreamed = true
      }, receive: receive
    ).1
  }

  /// Calls a method that answers with few bytes.
  ///
  /// - Throws: what `stream(_:attempts:isCompressed:from:receive:)` throws, and
  ///   `TransportError` if there are more.
  package func bytes(_ call: XRPCCall, limit: Int) async throws -> [UInt8] {
    try await stream(call) { response in
      try await response.body.collect(upTo: limit, of: call.url(on: service))
    }
  }

  /// Sends the request for a call, with the session's token if it is for this server, and once more
  /// with another token if that one has expired.
  private func deliver<Value>(
    _ call: XRPCCall, _ attempts: Int?, as bearer: Secret? = nil,
    from offset: () -> UInt64 = { 0 }, changing change: (inout HTTPRequest) -> Void = { _ in },
    receive: (HTTPResponse) async throws -> Value
  ) async throws -> (Network.Delivery, Value, secrets: [Secret]) {
    var request = call.request(to: service)
    change(&request)
    if let attempts { request.attempts = attempts }
    let session = bearer == nil && session?.isFor(service) == true ? session : nil
    var tokens: [Secret] = []
    while true {
      var authorized = request
      let token = if let session { try await session.accessToken() as Secret? } else { bearer }
      if let token {
        tokens.append(token)
        authorized.fields.append(("Authorization", "Bearer \(token.text)"))
      } else if let admin {
        tokens.append(admin)
        authorized.fields.append(("Authorization", XRPCCall.adminAuthorization(admin)))
      }
      let (delivery, value) = try await network.send(authorized, from: offset, receive: receive)
      if let value {
        if let session, let token { await session.served(token) }
        return (delivery, value, tokens + call.secrets)
      }
      let error = XRPCError(
        call, delivery, body: delivery.errorBody, hiding: tokens + call.secrets)
      guard let session, tokens.count == 1,
        try await session.renew(instead: tokens[0], after: error)
      else { throw error }
    }
  }
}
