import Foundation
import StandIn
import Testing

@testable import Scraping

@Suite(.ownThread, .timeLimit(.minutes(15))) struct `The metrics of a worker` {
  private func withServer(
    _ address: String = "127.0.0.1", _ body: (MetricsServer) throws -> Void
  ) throws {
    let server = try MetricsServer(address: address, port: 0) { path in
      path == "/metrics" ? ("200 OK", "some_total 1\n") : nil
    }
    defer { server.stop() }
    try body(server)
  }

  @Test func `are what is asked for, and nothing else is there`() throws {
    try withServer { server in
      let (status, body) = try LoopbackClient.get(port: server.port, path: "/metrics")
      #expect(status == 200 && body == "some_total 1\n")
      #expect(try LoopbackClient.get(port: server.port, path: "/").status == 404)
      let posted = try LoopbackClient.post(
        port: server.port, path: "/metrics", body: nil, type: nil)
      #expect(posted.status == 404)
    }
  }

  @Test(arguments: [40, 200], ["", "GET /metr"])
  func `come at once, whoever else is connected`(count: Int, text: String) throws {
    try withServer { server in
      let idlers = try (0..<count).map { _ in
        try LoopbackIdler(port: server.port, saying: text)
      }
      for _ in 0..<3 {
        let begin = ContinuousClock.now
        #expect(try LoopbackClient.get(port: server.port, path: "/metrics").status == 200)
        // One idle client after the other would take two seconds each.
        #expect(begin.duration(to: .now) < .seconds(60))
      }
      _ = consume idlers
    }
  }

  @Test(arguments: ["::", "::1", "0.0.0.0", "127.0.0.1"])
  func `are served at addresses of both kinds`(address: String) throws {
    try withServer(address) { server in
      let host = address.contains(":") ? "[\(address)]" : address
      #expect(server.authority == "\(host):\(server.port)")
      // The client knows IPv4 only.
      guard address != "::1" else { return }
      let (status, _) = try LoopbackClient.get(port: server.port, path: "/metrics")
      #expect(status == 200)
    }
  }

  @Test func `have an address that is one`() throws {
    for address in ["localhost", "1.2.3", ""] {
      #expect(throws: (any Error).self, "\(address)") {
        try MetricsServer(address: address, port: 0) { _ in nil }.stop()
      }
    }
    #expect(MetricsServer.address(in: "127.0.0.1") == "127.0.0.1")
    #expect(MetricsServer.address(in: "[::1]") == "::1")
    for text in ["localhost", "", "::1", "[127.0.0.1]", "[", "[::1", "::1]"] {
      #expect(MetricsServer.address(in: text) == nil, "\(text)")
    }
  }

  @Test func `are gone when the server is stopped, with all connections`() throws {
    // Another program may be given the port as soon as it is free.
    let isGone = try (0..<5).contains { _ in
      let server = try MetricsServer(address: "127.0.0.1", port: 0) { _ in ("200 OK", "") }
      let idler = try LoopbackIdler(port: server.port)
      defer { _ = consume idler }
      #expect(try LoopbackClient.get(port: server.port, path: "/metrics").status == 200)
      server.stop()
      server.stop()
      guard (try? LoopbackIdler(port: server.port)) == nil else { return false }
      // The port is free although a client was connected.
      let next = try? MetricsServer(address: "127.0.0.1", port: server.port) { _ in nil }
      next?.stop()
      return next != nil
    }
    #expect(isGone)
  }

  @Test func `are no part of programs that are started`() throws {
    try withServer { server in
      let idler = try LoopbackIdler(port: server.port)
      let (status, _) = try LoopbackClient.get(port: server.port, path: "/metrics")
      #expect(status == 200)
      // The socket that listens, and that of the client that is still connected.
      let descriptors = (0..<CInt(4096)).filter { Self.port(of: $0) == server.port }
      #expect(descriptors.count == 2)
      for descriptor in descriptors { #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0) }
      _ = consume idler
    }
  }

  /// The port of this machine that a socket has; nil for another descriptor.
  private static func port(of descriptor: CInt) -> UInt16? {
    var place = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isKnown = unsafe withUnsafeMutablePointer(to: &place) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isKnown, place.sin_family == sa_family_t(AF_INET) else { return nil }
    return UInt16(bigEndian: place.sin_port)
  }
}
