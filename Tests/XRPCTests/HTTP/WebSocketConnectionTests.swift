import Foundation
import IPLD
import StandIn
import Synchronization
import Testing

@testable import HTTP

@Suite struct `A WebSocket to a server that holds it up` {
  /// A way to hold a client up.
  enum Case: String, CaseIterable {
    case `makes no connection`, `accepts and says nothing`, `opens slowly`,
      `opens and says nothing`, `sends events that are not asked for`, `sends a byte a second`

    var behaviour: HostileFirehose.Behaviour {
      switch self {
      case .`makes no connection`, .`accepts and says nothing`: .accepts
      case .`opens slowly`: .opensSlowly
      case .`opens and says nothing`: .opens
      case .`sends events that are not asked for`:
        .floods(webSocketFrame([UInt8](repeating: 1, count: 100)))
      case .`sends a byte a second`:
        .trickles(webSocketFrame([UInt8](repeating: 1, count: 100)))
      }
    }
  }

  /// Uses a WebSocket where it may block.
  private func withSocket<Value: Sendable>(
    _ behaviour: HostileFirehose.Behaviour, _ scheme: String = "http",
    _ change: (inout NetworkOptions) -> Void = { _ in },
    _ body: @escaping @Sendable (WebSocket) throws -> Value
  ) async throws -> Value {
    let server = try HostileFirehose(behaviour)
    defer { server.stop() }
    var options = NetworkOptions(userAgent: "tests")
    options.allowsLoopback = true
    change(&options)
    let socket = try WebSocket("\(scheme)://127.0.0.1:\(server.port)", path: "/", options)
    return try await onOwnQueue { try body(socket) }
  }

  @Test(arguments: Case.allCases)
  func `ends within half a second when it is cancelled`(way: Case) async throws {
    // A server that says nothing does not come to the end of TLS.
    let scheme = way == .`makes no connection` ? "https" : "http"
    try await withSocket(way.behaviour, scheme) { socket in
      let end = Mutex<(any Error)?>(nil)
      let isOver = DispatchSemaphore(value: 0)
      let thread = Thread {
        do {
          try socket.open()
          while true { _ = try socket.next(waiting: 60) }
        } catch {
          end.withLock { $0 = error }
        }
        isOver.signal()
      }
      thread.start()
      #expect(isOver.wait(timeout: .now() + 1) == .timedOut)
      socket.cancel()
      #expect(isOver.wait(timeout: .now() + 0.5) == .success)
      #expect(end.withLock { $0 is CancellationError })
    }
  }

  @Test(arguments: [Case.`opens and says nothing`, .`sends a byte a second`])
  func `is waited for no longer than it is to be`(way: Case) async throws {
    try await withSocket(way.behaviour) { socket in
      try socket.open()
      for seconds in [0, 0.3, 1.3] {
        let start = ContinuousClock.now
        #expect(try socket.next(waiting: seconds) == nil)
        let waited = start.duration(to: .now) / .seconds(1)
        #expect((seconds..<seconds + 0.5).contains(waited))
      }
      // Bytes that make no frame are no sign of life.
      #expect(socket.heard.duration(to: .now) > .seconds(1.5))
    }
  }

  @Test(arguments: [
    (
      Case.`makes no connection`,
      TransportError.Reason.notConnected("none was made within 1 seconds")
    ),
    (.`accepts and says nothing`, .tooSlow(seconds: 1)), (.`opens slowly`, .tooSlow(seconds: 1)),
  ])
  func `has to be open in time`(way: Case, reason: TransportError.Reason) async throws {
    let scheme = way == .`makes no connection` ? "https" : "http"
    try await withSocket(way.behaviour, scheme) {
      $0.connectSeconds = 1
      $0.stallSeconds = 1
    } _: { socket in
      let start = ContinuousClock.now
      let error = #expect(throws: TransportError.self) { try socket.open() }
      #expect(error?.reason == reason)
      #expect(start.duration(to: .now) < .seconds(10))
    }
  }

  @Test(arguments: [
    (webSocketFrame([1], first: 0x89), "more than 100 control frames in 10.0 seconds"),
    (webSocketFrame([1], first: 0x8a), "more than 100 control frames in 10.0 seconds"),
    (webSocketFrame([1], first: 0x02) + webSocketFrame([], first: 0x89), "begins inside another"),
  ])
  func `ends when it is flooded with what is to be answered`(frames: [UInt8], why: String)
    async throws
  {
    let error = await #expect(throws: TransportError.self) {
      try await withSocket(.floods(frames)) { socket in
        try socket.open()
        _ = try socket.next(waiting: 30)
      }
    }
    guard case .malformedAnswer(let what) = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(what.contains(why))
  }
}

@Suite struct `The connection of a WebSocket` {
  private func reason(_ body: () throws -> Void) -> TransportError.Reason? {
    #expect(throws: TransportError.self, performing: body)?.reason
  }

  @Test func `goes where a host is pinned to`() throws {
    let server = try HostileFirehose(.opens)
    defer { server.stop() }
    var options = NetworkOptions(userAgent: "tests")
    options.allowsLoopback = true
    options.hostPins = ["firehose.test:\(server.port):127.0.0.1"]
    try WebSocket("http://firehose.test:\(server.port)", path: "/", options).open()
    #expect(server.connectionCount == 1)
  }

  @Test func `is made to private addresses only where the user has named the server`() throws {
    let server = try HostileFirehose(.opens)
    defer { server.stop() }
    let origin = "http://127.0.0.1:\(server.port)"
    var options = NetworkOptions(userAgent: "tests")
    #expect(
      reason { _ = try WebSocket(origin, path: "/", options) } == .refusedAddress("127.0.0.1"))
    options.plainServers = [origin]
    try WebSocket(origin, path: "/", options).open()
    // A name that leads there is found out when it is looked up.
    options.hostPins = ["firehose.test:\(server.port):127.0.0.1"]
    let rules = try ConnectionRules(options, policy: AddressPolicy())
    #expect(
      reason {
        try WebSocket("https://firehose.test:\(server.port)", path: "/", rules).open()
      } == .refusedAddress("127.0.0.1"))
    #expect(server.connectionCount == 1)
  }

  @Test func `is not made without TLS to the public internet`() throws {
    var options = NetworkOptions(userAgent: "tests")
    options.plainServers = ["http://192.0.32.8"]
    #expect(reason { _ = try WebSocket("http://192.0.32.8", path: "/", options) } == .unusableURL)
  }

  @Test func `goes through the proxy for https, and through none else`() throws {
    let proxy = try LoopbackServer { _, response in
      response.status = 403
      try response.send("no")
    }
    defer { proxy.stop() }
    let server = try HostileFirehose(.opens)
    defer { server.stop() }
    var options = NetworkOptions(userAgent: "tests")
    options.allowsLoopback = true
    let rules = try ConnectionRules(
      options, policy: AddressPolicy(options), environment: ["https_proxy": proxy.url])
    guard
      case .notConnected? = reason({
        try WebSocket("https://firehose.test", path: "/", rules).open()
      })
    else {
      Issue.record("the proxy refuses")
      return
    }
    #expect(proxy.log.map(\.path) == ["firehose.test:443"])
    try WebSocket("http://127.0.0.1:\(server.port)", path: "/", rules).open()
    #expect(server.connectionCount == 1 && proxy.log.count == 1)
  }

  @Test(
    .enabled(
      if: TestCertificate.program != nil,
      "the openssl program is not installed, which is the server here"))
  func `believes certificates as other connections do`() throws {
    let server = try TLSServer()
    var options = NetworkOptions(userAgent: "tests")
    options.hostPins = ["pds.test:\(server.port):127.0.0.1"]
    let origin = "https://pds.test:\(server.port)"
    guard case .notSecure? = reason({ try WebSocket(origin, path: "/", options).open() }) else {
      Issue.record("it trusts a certificate that nobody has signed")
      return
    }
    options.caFile = server.certificate
    // It is not a WebSocket server.
    guard
      case .malformedAnswer(let why)? = reason({
        try WebSocket(origin, path: "/", options).open()
      })
    else {
      Issue.record("it is no answer")
      return
    }
    #expect(why.contains("does not open a WebSocket: HTTP/1.0 200"))
  }
}
