import Foundation
import HTTP
import Synchronization
import Testing

@testable import StandIn

/// A port on which every connection is answered with the same bytes, whatever it says, and closed.
private final class ByteServer: Sendable {
  let port: UInt16
  private let listener: Socket
  private let count = Mutex(0)

  init(_ answer: [UInt8]) throws {
    let listener = try Socket.listening(port: 0)
    self.listener = listener
    port = listener.port
    Thread.detachNewThread { [weak self] in
      while let connection = listener.accept() {
        self?.count.withLock { $0 += 1 }
        var received: [UInt8] = []
        received.reserveCapacity(4096)
        _ = connection.receive(into: &received)
        _ = connection.send(answer.span)
        connection.close()
      }
    }
  }

  deinit { listener.shutdown() }

  var connectionCount: Int { count.withLock { $0 } }
}

@Suite struct `a hostile answer` {
  private func failure(_ loopback: Loopback) async throws -> TransportError? {
    await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
  }

  @Test func `that switches to another protocol is refused at once`() async throws {
    let loopback = try Loopback { _, response in
      try response.sendRaw(
        Array("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n".utf8))
      while true { try response.sendRaw([UInt8](repeating: 0x78, count: 1000)) }
    }
    let error = try await failure(loopback)
    guard case .malformedAnswer(let what)? = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(what.contains("101"))
    #expect(error?.isTransient == false)
  }

  @Test(arguments: [100_000, 1 << 20])
  func `with a line that is far too long is called that`(length: Int) async throws {
    let loopback = try Loopback { _, response in
      try response.sendRaw(Array("HTTP/1.1 200 OK\r\nX-Filler: ".utf8))
      try response.sendRaw([UInt8](repeating: 0x61, count: length))
      try response.sendRaw(Array("\r\n\r\n".utf8))
    }
    let error = try await failure(loopback)
    guard case .malformedAnswer(let what)? = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(what.contains("head"))
  }

  @Test(arguments: [
    Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), Array("SSH-2.0-OpenSSH_9.2\r\n".utf8), [],
    [0x16, 0x03, 0x03, 0x00, 0x05, 1, 2, 3, 4, 5], [UInt8](repeating: 0xff, count: 500),
  ])
  func `that is no TLS may be otherwise the next time`(answer: [UInt8]) async throws {
    let server = try ByteServer(answer)
    var options = NetworkOptions(userAgent: "test")
    options.allowsLoopback = true
    let transport = try CurlTransport(options)
    let error = await #expect(throws: TransportError.self) {
      _ = try await transport.send(
        HTTPRequest(.get, "https://127.0.0.1:\(server.port)/"))
    }
    #expect(error?.isTransient == true, "\(String(describing: error))")
    #expect(server.connectionCount > 0)
  }
}

@Suite struct `a host with several addresses` {
  /// A transport that may connect to this machine, and not to the other addresses of a host.
  private func transport(_ addresses: String, port: UInt16) throws -> CurlTransport {
    var options = NetworkOptions(userAgent: "test")
    options.hostPins = ["two.test:\(port):\(addresses)"]
    options.stallSeconds = 20
    return try CurlTransport(options, policy: AddressPolicy(allowsLoopback: true))
  }

  private func error(_ transport: CurlTransport, port: UInt16) async -> TransportError? {
    await #expect(throws: TransportError.self) {
      _ = try await transport.send(
        HTTPRequest(.get, "http://two.test:\(port)/")
      ).read()
    }
  }

  @Test(arguments: ["10.0.0.1,127.0.0.1", "127.0.0.1,10.0.0.1", "10.0.0.1,10.0.0.2,127.0.0.1"])
  func `fails for what became of the connection, not for an address that was refused before`(
    addresses: String
  ) async throws {
    let server = try LoopbackServer { _, response in
      response.distortion = .cut(at: 0.5)
      try response.send(content(100_000))
    }
    let error = await error(try transport(addresses, port: server.port), port: server.port)
    guard case .cutOff? = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(error?.isTransient == true)
  }

  @Test func `is refused if all of them are`() async throws {
    let server = try LoopbackServer { _, response in try response.send("x") }
    let error = await error(
      try transport("10.0.0.1,10.0.0.2", port: server.port), port: server.port)
    guard case .refusedAddress? = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(server.connectionCount == 0)
  }

  @Test func `is not connected to if nobody listens at the one that is permitted`() async throws {
    let error = await error(try transport("10.0.0.1,127.0.0.1", port: 1), port: 1)
    #expect(error?.isTransient == true, "\(String(describing: error))")
  }
}

@Suite struct `a name of a network of one's own` {
  private static let privateNames = [
    "localhost", "a.localhost", "printer.local", "db.internal", "nas.home.arpa", "intranet",
    "INTRANET.", "10.0.0.1", "127.0.0.1", "[::1]", "[fd00::1]", "169.254.169.254",
  ]

  @Test(arguments: privateNames)
  func `is not asked unless the user named it`(host: String) throws {
    let url = try HTTPURL("https://\(host)/")
    let policy = AddressPolicy()
    #expect(!policy.permits(url, isRedirected: false))
    #expect(!policy.permits(url, isRedirected: true))
    let named = AddressPolicy(named: [url.authority])
    #expect(named.permits(url, isRedirected: false))
    #expect(!named.permits(url, isRedirected: true), "a server that points there is not the user")
  }

  @Test(arguments: ["pds.example.com", "local.example", "8.8.8.8", "localhost.example.com"])
  func `is none on the internet`(host: String) throws {
    #expect(AddressPolicy().permits(try HTTPURL("https://\(host)/"), isRedirected: true))
  }

  @Test func `is this machine where the user works with it`() throws {
    let policy = AddressPolicy(allowsLoopback: true)
    #expect(policy.permits(try HTTPURL("http://localhost:2583/"), isRedirected: true))
    #expect(!policy.permits(try HTTPURL("https://printer.local/"), isRedirected: false))
  }

  @Test(arguments: ["printer.local", "db.internal", "intranet", "nas.home.arpa"])
  func `is not followed to, and not looked up`(host: String) async throws {
    let loopback = try Loopback { _, response in
      response.status = 302
      response.fields = [("Location", "https://\(host)/secret")]
      try response.send()
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .refusedRedirect("https://\(host)/secret"))
  }

  @Test func `over plain http, a public address is refused as a redirection`() async throws {
    // What a name leads to is set by a pin here: nothing is sent there.
    let loopback = try Loopback({ $0.hostPins = ["public.test:80:8.8.8.8"] }) { _, response in
      response.status = 302
      response.fields = [("Location", "http://public.test/")]
      try response.send()
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .refusedRedirect("http://public.test/"))
  }

  @Test func `over plain http, a name that is not found is refused as a redirection`() async throws
  {
    let loopback = try Loopback { _, response in
      response.status = 302
      response.fields = [("Location", "http://nowhere.invalid/")]
      try response.send()
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .refusedRedirect("http://nowhere.invalid/"))
    #expect(error?.isTransient == false)
  }
}
