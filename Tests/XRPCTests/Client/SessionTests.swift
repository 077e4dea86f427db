import ATProtocol
import IPLD
import StandIn
import Synchronization
import Testing

@testable import HTTP
@testable import XRPC

/// A server that gives out tokens with an end, and counts what is asked of it.
final class TokenServer: Sendable {
  struct State {
    var logins = 0
    var refreshes = 0
    var generation = 0
    /// The generations that are accepted.
    var accepted: Set<Int> = []
    var acceptsRefresh = true
    var acceptsPassword = true
    /// How a token that is over is refused.
    var refusal: (status: Int, body: String) = (
      400, "{\"error\":\"ExpiredToken\",\"message\":\"Token has expired\"}"
    )
    var acceptsNothing = false
    var lifetime: Int?
    /// All tokens that were sent along, and where to.
    var bearers: [(host: String, token: String)] = []
  }

  static let password = "hunter2-hunter2"
  let state = Mutex(State())

  func token(_ kind: String, _ generation: Int, end: Int?) -> String {
    let claims = end.map { "{\"exp\":\($0)}" } ?? "{}"
    let payload = Base64.encode(Array(claims.utf8)).map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
    return "\(kind)head.\(String(payload)).SECRETSIGNATURE\(generation)"
  }

  func answer(_ request: HTTPRequest, unixTime: Double) async -> (
    status: Int, fields: [(name: String, value: String)], body: [UInt8]
  ) {
    // Others get here, too.
    for _ in 0..<5 { await Task.yield() }
    let host = String(request.url.split(separator: "/")[1])
    let bearer = request.fields.first { $0.name == "Authorization" }?.value.dropFirst(7)
    return state.withLock { state in
      if let bearer { state.bearers.append((host, String(bearer))) }
      func session() -> (Int, [(name: String, value: String)], [UInt8]) {
        state.generation += 1
        state.accepted = [state.generation]
        let end = state.lifetime.map { Int(unixTime) + $0 }
        let access = token("a", state.generation, end: end)
        let refresh = token("r", state.generation, end: nil)
        return (
          200, [],
          Array(
            "{\"accessJwt\":\"\(access)\",\"refreshJwt\":\"\(refresh)\",\"did\":\"did:plc:abcdefghijklmnopqrstuvwx\",\"active\":true}"
              .utf8)
        )
      }
      if request.url.hasSuffix("createSession") {
        state.logins += 1
        guard state.acceptsPassword else {
          let echo = String(decoding: request.body.inMemory ?? [], as: UTF8.self)
          return (401, [], Array("no: \(echo)".utf8))
        }
        return session()
      }
      if request.url.hasSuffix("refreshSession") {
        state.refreshes += 1
        guard state.acceptsRefresh, bearer?.hasPrefix("rhead.") == true else {
          return (401, [], Array("odd token \(bearer ?? "")".utf8))
        }
        return session()
      }
      let generation = bearer.flatMap { $0.split(separator: ".").last }.flatMap {
        Int($0.dropFirst("SECRETSIGNATURE".count))
      }
      guard let generation, state.accepted.contains(generation), !state.acceptsNothing else {
        let echo = state.refusal.body.hasSuffix(" ") ? bearer ?? "" : ""
        return (state.refusal.status, [], Array((state.refusal.body + echo).utf8))
      }
      return (200, [], Array("{\"cids\":[]}".utf8))
    }
  }
}

@Suite struct `a session` {
  let server = TokenServer()
  let clock = VirtualClock()
  let events = ScriptedNetwork.EventLog()
  let network: Network
  let session: Session
  let client: XRPCClient
  let query: XRPCQuery<ListPage<CID>>

  init() throws {
    var options = NetworkOptions(userAgent: "test")
    options.observer = { [events] in events.append($0) }
    let transport = ScriptedTransport { [server, clock] request, _ in
      await server.answer(request, unixTime: clock.unixTime)
    }
    network = Network(options, transport: transport, clock: clock, chance: { 1 })
    session = Session(
      service: "https://pds.test", network: network, identifier: "alice.test", of: nil,
      password: Secret(TokenServer.password))
    client = XRPCClient(service: "https://pds.test/", network: network, session: session)
    query = .listBlobs(try DID("did:plc:abcdefghijklmnopqrstuvwx"))
  }

  private func callTwentyTimes() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 { group.addTask { _ = try await client.call(query) } }
      try await group.waitForAll()
    }
  }

  private var counts: [Int] { server.state.withLock { [$0.logins, $0.refreshes] } }

  @Test func `is waited for no longer by who is cancelled, and goes on for the others`()
    async throws
  {
    let gate = Awaited<Void>()
    let state = Mutex((asked: 0, isGivenUp: false))
    let transport = ScriptedTransport { [server, clock] request, _ in
      let isFirst = state.withLock { state in
        state.asked += 1
        return state.asked == 1
      }
      do {
        if isFirst { try await Task.sleep(for: .seconds(60)) } else { try await gate.value {} }
      } catch {
        state.withLock { $0.isGivenUp = true }
        throw error
      }
      return await server.answer(request, unixTime: clock.unixTime)
    }
    let session = Session(
      service: "https://pds.test",
      network: Network(
        NetworkOptions(userAgent: "test"), transport: transport, clock: clock, chance: { 1 }),
      identifier: "alice.test", of: nil, password: Secret(TokenServer.password))
    let alone = Task { try await session.account() }
    while state.withLock({ $0.asked }) < 1 { await Task.yield() }
    alone.cancel()
    await #expect(throws: CancellationError.self) { try await alone.value }
    while !state.withLock({ $0.isGivenUp }) { await Task.yield() }

    let both = (0..<2).map { _ in Task { try await session.account() } }
    while state.withLock({ $0.asked }) < 2 { await Task.yield() }
    // Both wait for one login by the time that the first is cancelled.
    try await Task.sleep(for: .milliseconds(50))
    both[0].cancel()
    await #expect(throws: CancellationError.self) { try await both[0].value }
    gate.give(.success(()))
    #expect(try await both[1].value.text == "did:plc:abcdefghijklmnopqrstuvwx")
    #expect(counts == [1, 0])
  }

  @Test func `begins once for all who need it`() async throws {
    try await callTwentyTimes()
    #expect(counts == [1, 0])
    #expect(try await session.account().text == "did:plc:abcdefghijklmnopqrstuvwx")
    #expect(counts == [1, 0])
  }

  @Test(arguments: [
    (400, "{\"error\":\"ExpiredToken\",\"message\":\"Token has expired\"}"),
    (401, "{\"error\":\"AuthMissing\",\"message\":\"\"}"), (401, "bad token "),
    (400, "{\"error\":\"InvalidToken\"}"),
  ])
  func `is renewed once for all when its token is refused`(status: Int, body: String) async throws {
    try await callTwentyTimes()
    clock.advance(3600)
    server.state.withLock {
      $0.accepted = []
      $0.refusal = (status, body)
    }
    try await callTwentyTimes()
    #expect(counts == [1, 1])
  }

  @Test func `is renewed before its token ends, once for all`() async throws {
    server.state.withLock { $0.lifetime = 600 }
    try await callTwentyTimes()
    clock.advance(580)
    let before = server.state.withLock { $0.bearers.count }
    try await callTwentyTimes()
    #expect(counts == [1, 1])
    // The old token has not been sent again.
    let sent = server.state.withLock { $0.bearers[before...].map(\.token) }
    #expect(sent.filter { $0.hasPrefix("ahead.") && $0.hasSuffix("1") }.isEmpty)
  }

  @Test func `begins anew when it cannot be renewed`() async throws {
    try await callTwentyTimes()
    clock.advance(3600)
    server.state.withLock {
      $0.accepted = []
      $0.acceptsRefresh = false
    }
    try await callTwentyTimes()
    #expect(counts == [2, 1])
  }

  @Test func `is not renewed for ever when all tokens are refused`() async throws {
    _ = try await client.call(query)
    clock.advance(3600)
    server.state.withLock { $0.acceptsNothing = true }
    for _ in 0..<20 {
      await #expect(throws: XRPCError.self) { _ = try await client.call(query) }
    }
    #expect(counts == [1, 1])
  }

  @Test func `a token that always seems to be over is used all the same`() async throws {
    // The server's clock is hours behind.
    server.state.withLock { $0.lifetime = -7200 }
    try await callTwentyTimes()
    try await callTwentyTimes()
    #expect(counts == [1, 0])
  }

  @Test func `does not send a wrong password twice`() async throws {
    server.state.withLock { $0.acceptsPassword = false }
    for _ in 0..<5 {
      let error = await #expect(throws: XRPCError.self) { _ = try await client.call(query) }
      #expect(error?.endpoint == "com.atproto.server.createSession")
    }
    #expect(counts == [1, 0])
  }

  @Test func `sends its token to no other server`() async throws {
    for service in [
      "https://other.test", "https://pds.test:8443", "http://pds.test",
      "https://pds.test.evil.test",
    ] {
      let other = XRPCClient(service: service, network: network, session: session)
      await #expect(throws: XRPCError.self) { _ = try await other.call(query) }
    }
    #expect(server.state.withLock { $0.bearers.isEmpty })
    #expect(counts == [0, 0])
  }

  @Test func `shows no secret in errors, events and dumps`() async throws {
    var shown: [String] = []
    _ = try await client.call(query)
    clock.advance(3600)
    server.state.withLock {
      $0.acceptsNothing = true
      $0.refusal = (401, "you sent ")
    }
    do { _ = try await client.call(query) } catch { shown.append("\(error)") }
    do { _ = try await client.call(query) } catch { shown.append("\(error)") }
    clock.advance(3600)
    server.state.withLock {
      $0.acceptsPassword = false
      $0.acceptsRefresh = false
    }
    do { _ = try await client.call(query) } catch { shown.append("\(error)") }
    #expect(shown.count == 3)
    #expect(shown.contains { $0.contains("you sent …") })
    let secret = Secret(TokenServer.password)
    var dumped = ""
    dump(secret, to: &dumped)
    dump(XRPCQuery.createSession("a", secret), to: &dumped)
    shown += [dumped, "\(secret)", String(reflecting: secret), "\([secret])", "\(events.all)"]
    for text in shown {
      #expect(!text.contains("SECRETSIGNATURE"))
      #expect(!text.contains(TokenServer.password))
    }
  }
}

@Suite struct `tokens in answers` {
  private static let jwt =
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJkaWQ6cGxjOmFiYyJ9.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

  private func session(_ status: Int, _ body: String) -> Session {
    let transport = ScriptedTransport { _, _ in (status, [], Array(body.utf8)) }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: VirtualClock(), chance: { 1 })
    return Session(
      service: "https://pds.test", network: network, identifier: "alice.test", of: nil,
      password: Secret(TokenServer.password))
  }

  /// What logging in says.
  private func said(_ status: Int, _ body: String) async -> String {
    let session = session(status, body)
    let error = await #expect(throws: XRPCError.self) { _ = try await session.account() }
    return error.map { "\($0) \(String(reflecting: $0))" } ?? ""
  }

  @Test(arguments: [
    #"{"accessJwt":"opaque-secret","refreshJwt":"other-secret"}"#,
    #"{"accessJwt":"opaque-secret","refreshJwt":"other-secret","did":"opaque-secret"}"#,
    #"{"accessJwt":"opaque-secret\nx","refreshJwt":"other-secret","did":"did:web:a.test"}"#,
    #"{"accessJwt":"opaque-secret","refreshJwt":"other-secret""#, "opaque-secret other-secret",
  ])
  func `of success that are malformed are not quoted`(_ body: String) async {
    let text = await said(200, body)
    #expect(text.contains("createSession"))
    #expect(!text.contains("secret"), "\(text)")
  }

  @Test func `that refuse a login are quoted by their words alone, and these without tokens`() async
  {
    let refused = await said(
      401, #"{"error":"Odd","message":"not \#(Self.jwt), sorry","accessJwt":"opaque-secret"}"#)
    #expect(refused.contains("Odd: not …, sorry"), "\(refused)")
    #expect(!refused.contains("secret") && !refused.contains("eyJ"), "\(refused)")
    let bare = await said(401, #"{"accessJwt":"opaque-secret"}"#)
    #expect(!bare.contains("secret"), "\(bare)")
  }

  @Test(arguments: [
    (jwt, "…"), ("a \(jwt) b", "a … b"), ("Bearer \(jwt)", "Bearer …"), ("\"\(jwt)\"", "\"…\""),
    (String(jwt.prefix(40)), "…"),
    (
      "x aaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbb.cccccccccccccccccccc",
      "x …"
    ),
    ("https://blewit.us-west.host.bsky.network/x", "https://blewit.us-west.host.bsky.network/x"),
    ("com.atproto.sync.getRepo", "com.atproto.sync.getRepo"), ("eyJ", "eyJ"), ("1.2.3", "1.2.3"),
    ("did:plc:ewvi7nxzyoun6zhxrhs64oiz", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"),
  ])
  func `are hidden in all that is quoted`(_ text: String, _ shown: String) {
    #expect(Excerpt.of(text) == shown)
    #expect(Excerpt.of(Array(text.utf8)) == shown)
  }

  @Test func `are hidden also where they are cut off`() {
    let text = String(repeating: "x ", count: 95) + Self.jwt + String(repeating: "y", count: 5000)
    #expect(!Excerpt.of(text).contains("eyJ"))
  }
}
