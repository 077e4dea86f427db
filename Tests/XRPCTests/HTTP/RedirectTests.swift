import HTTP
import StandIn
import Testing

@Suite struct redirections {
  /// A server whose paths lead on by number, `/3` to `/2`, and `/to` to wherever the query says.
  private func leading(_ change: (inout NetworkOptions) -> Void = { _ in }) throws -> Loopback {
    try Loopback(change) { request, response in
      if let number = Int(request.path.dropFirst()), number > 0 {
        response.status = [301, 302, 307, 308][number % 4]
        response.fields = [("Location", "/\(number - 1)")]
        try response.send("elsewhere")
      } else if let target = request.parameter("to") {
        response.status = 302
        response.fields = [("Location", target)]
        try response.send()
      } else {
        try response.send("here")
      }
    }
  }

  @Test func `are followed three times`() async throws {
    let loopback = try leading()
    let (response, body) = try await loopback.get("/3")
    #expect(String(decoding: body, as: UTF8.self) == "here")
    #expect(response.url == loopback.server.url + "/0")
  }

  @Test func `are not followed four times`() async throws {
    let loopback = try leading()
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/4")
    }
    #expect(error?.reason == .tooManyRedirects)
    #expect(loopback.server.log.count == 4)
  }

  @Test func `are answers to who does not follow them`() async throws {
    let loopback = try leading()
    let response = try await loopback.transport.send(
      HTTPRequest(.get, loopback.server.url + "/3", followsRedirects: false))
    #expect(response.status == 308)
    #expect(String(decoding: try await response.read(), as: UTF8.self) == "elsewhere")
    let posted = try await loopback.transport.send(
      HTTPRequest(.post, loopback.server.url + "/3"))
    #expect(posted.status == 308)
  }

  @Test func `take a token along to the same server, and to no other`() async throws {
    let other = try Loopback { _, response in try response.send("other") }
    let loopback = try leading()
    let fields = [
      (name: "authorization", value: "Bearer secret"), (name: "X-Harmless", value: "1"),
    ]
    _ = try await loopback.get("/1", fields: fields)
    #expect(loopback.server.log.map { $0["authorization"] != nil } == [true, true])
    _ = try await loopback.get("/?to=\(other.server.url)/x", fields: fields)
    #expect(other.server.log.map { $0["authorization"] } == [nil])
    #expect(other.server.log.map { $0["x-harmless"] } == ["1"])
  }

  @Test func `that come back do not bring the token back`() async throws {
    let loopback = try leading()
    let back = loopback.server.url
    let other = try Loopback { _, response in
      response.status = 302
      response.fields = [("Location", back + "/0")]
      try response.send()
    }
    _ = try await loopback.get(
      "/?to=\(other.server.url)/",
      fields: [(name: "Authorization", value: "Bearer secret")])
    #expect(loopback.server.log.map { $0["authorization"] != nil } == [true, false])
  }

  @Test(arguments: [
    "ftp://pds.test/", "file:///etc/passwd", "https://user:pass@pds.test/", "http://8.8.8.8/",
    "https://10.0.0.1/", "https://192.168.1.1/admin", "https://169.254.169.254/latest/meta-data",
    "https://[fd00::1]/", "https://[fe80::1]/", "https://[::ffff:10.0.0.1]/", "https://0.0.0.0/",
    "https://100.64.0.1/", "https://0x0a000001/", "https://[64:ff9b::10.0.0.1]/",
    "gopher://127.0.0.1/", "http://", "https://pds\u{200b}.test/", "https://./x",
  ])
  func `are refused before anything is connected to`(target: String) async throws {
    let loopback = try leading()
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/?to=\(target)")
    }
    guard case .refusedRedirect = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(error?.isTransient == false)
  }

  @Test(arguments: [
    ("/\u{1b}[2J", "/\\u{1b}[2J"), ("/\u{7}a", "/\\u{7}a"),
    ("/a\u{202e}b c\u{7f}", "/a\\u{202e}b c\\u{7f}"),
  ])
  func `are shown without what could disturb a terminal`(path: String, shown: String) async throws {
    let loopback = try Loopback { _, response in
      response.status = 302
      response.fields = [("Location", "https://user@pds.test" + path)]
      try response.send()
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .refusedRedirect("https://user@pds.test" + shown))
  }
}

@Suite struct `a server on the user's own network` {
  /// A server on this machine, and a transport whose user has never heard of it.
  private func unwelcome(
    named: Set<Authority> = [], pins: [String] = [], handler: LoopbackServer.Handler? = nil
  ) throws -> (LoopbackServer, CurlTransport) {
    let server = try LoopbackServer(
      handler: handler ?? { _, response in try response.send("a secret of this machine") })
    var options = NetworkOptions(userAgent: "test")
    options.hostPins = pins.map { $0 + ":\(server.port):127.0.0.1" }
    let policy = AddressPolicy(
      named: Set(named.map { Authority(host: $0.host, port: server.port) }))
    return (server, try CurlTransport(options, policy: policy))
  }

  private func refusal(_ transport: CurlTransport, _ url: String) async -> TransportError.Reason? {
    let error = await #expect(throws: TransportError.self) {
      _ = try await transport.send(HTTPRequest(.get, url))
    }
    return error?.reason
  }

  @Test(arguments: [
    "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1",
  ])
  func `is not reached by its address`(host: String) async throws {
    let (server, transport) = try unwelcome()
    guard case .refusedAddress = await refusal(transport, "https://\(host):\(server.port)/") else {
      Issue.record("it is not refused")
      return
    }
    guard case .refusedAddress = await refusal(transport, "http://\(host):\(server.port)/") else {
      Issue.record("it is not refused")
      return
    }
    #expect(server.connectionCount == 0)
  }

  @Test(arguments: ["localhost", "evil.localhost"])
  func `is not reached by its name`(host: String) async throws {
    let (server, transport) = try unwelcome()
    guard case .refusedAddress = await refusal(transport, "http://\(host):\(server.port)/") else {
      Issue.record("it is not refused")
      return
    }
    #expect(server.connectionCount == 0)
  }

  /// What a name leads to is set by a pin here, and by somebody's DNS server elsewhere.
  @Test func `is not reached by a name whose address has changed`() async throws {
    let (server, transport) = try unwelcome(pins: ["rebound.test"])
    let reason = await refusal(transport, "https://rebound.test:\(server.port)/")
    #expect(reason == .refusedAddress("127.0.0.1"))
    #expect(server.connectionCount == 0)
  }

  @Test func `is not reached by a redirection to its name`() async throws {
    let (server, transport) = try unwelcome(
      named: [Authority(host: "named.test", port: 0)], pins: ["named.test", "rebound.test"]
    ) { request, response in
      response.status = 302
      response.fields = [
        ("Location", "http://rebound.test:\(request["host"]?.split(separator: ":").last ?? "")/")
      ]
      try response.send()
    }
    let reason = await refusal(transport, "http://named.test:\(server.port)/")
    #expect(reason == .refusedAddress("127.0.0.1"))
    #expect(server.log.count == 1)
  }

  /// The connection is there already, opened for the user; the request is one that somebody else
  /// points to.
  @Test func `is not reached by a connection that was opened for another request`() async throws {
    let server = try LoopbackServer { _, response in try response.send("x") }
    let named = "http://named.test:\(server.port)/"
    let bouncing = try LoopbackServer { _, response in
      response.status = 302
      response.fields = [("Location", named)]
      try response.send()
    }
    var options = NetworkOptions(userAgent: "test")
    options.hostPins = ["named.test:\(server.port):127.0.0.1"]
    let transport = try CurlTransport(
      options,
      policy: AddressPolicy(named: [
        Authority(host: "named.test", port: server.port),
        Authority(host: "127.0.0.1", port: bouncing.port),
      ]))
    _ = try await transport.send(HTTPRequest(.get, named)).read()
    let reason = await refusal(transport, bouncing.url + "/")
    #expect(reason == .refusedAddress("127.0.0.1"))
    #expect(server.log.count == 1)
    _ = try await transport.send(HTTPRequest(.get, named)).read()
    #expect(server.log.count == 2)
  }
}
