import HTTP
import StandIn
import Synchronization
import Testing
import XRPC

@Suite struct `a body that is sent` {
  private static func request(_ url: String, _ body: RequestBody) -> HTTPRequest {
    var request = HTTPRequest(
      .post, url, fields: [("Content-Type", "application/octet-stream")], isStreamed: true,
      followsRedirects: false)
    request.isPrepared = true
    request.body = body
    return request
  }

  /// A body of this many bytes that is asked for piece by piece, and the largest piece that was.
  private final class Asked: Sendable {
    private let largest = Mutex(0)
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var longestPiece: Int { largest.withLock { $0 } }

    var body: RequestBody {
      RequestBody(byteCount: UInt64(bytes.count)) { [self] offset, count in
        largest.withLock { $0 = max($0, count) }
        return Array(bytes[Int(offset)..<Int(offset) + count])
      }
    }
  }

  @Test(arguments: [0, 1, 16 << 10, 16 << 10 + 1, 65_536, 5_000_000])
  func `arrives as it is, with its length known before`(_ count: Int) async throws {
    let bytes = content(count)
    let arrived = Mutex<[(length: String?, body: [UInt8])]>([])
    let loopback = try Loopback { request, response in
      arrived.withLock { $0.append((request["content-length"], request.body)) }
      try response.send("taken")
    }
    let asked = Asked(bytes)
    for body in [RequestBody(bytes), asked.body] {
      let response = try await loopback.transport.send(
        Self.request(loopback.server.url + "/upload", body))
      #expect(response.status == 200)
      #expect(try await response.read() == Array("taken".utf8))
    }
    let found = arrived.withLock { $0 }
    #expect(found.count == 2)
    for one in found {
      #expect(one.length == "\(count)")
      #expect(one.body == bytes)
    }
    // It is never in memory as a whole.
    #expect(asked.longestPiece <= 1 << 20)
  }

  @Test func `that cannot be read is an error, and not cut short`() async throws {
    struct Unreadable: Error {}
    let loopback = try Loopback { _, response in try response.send("taken") }
    let body = RequestBody(byteCount: 500_000) { offset, count in
      guard offset < 200_000 else { throw Unreadable() }
      return [UInt8](repeating: 7, count: count)
    }
    await #expect(throws: Unreadable.self) {
      try await loopback.transport.send(Self.request(loopback.server.url + "/upload", body))
    }
    #expect(loopback.server.log.isEmpty)
    let short = RequestBody(byteCount: 500_000) { _, count in
      [UInt8](repeating: 7, count: count - 1)
    }
    await #expect(throws: (any Error).self) {
      try await loopback.transport.send(Self.request(loopback.server.url + "/upload", short))
    }
    #expect(loopback.server.log.isEmpty)
  }

  @Test func `is sent from its beginning where a connection that was kept is gone`() async throws {
    let bytes = content(300_000)
    let bodies = Mutex<[[UInt8]]>([])
    let loopback = try Loopback { request, response in
      bodies.withLock { $0.append(request.body) }
      try response.send("taken")
      // It is ended without a word, as servers end connections that were idle.
      response.close()
    }
    for _ in 0..<5 {
      let response = try await loopback.transport.send(
        Self.request(loopback.server.url + "/upload", Asked(bytes).body))
      _ = try await response.read()
    }
    #expect(bodies.withLock { $0 } == [[UInt8]](repeating: bytes, count: 5))
  }

  /// A limit of one method says nothing of others, and is left to the one who asks.
  @Test func `that is refused for its limit does not hold up what else is asked`() async throws {
    let loopback = try Loopback { request, response in
      guard request.method == "POST" else { return try response.send("{}") }
      response.status = 429
      response.fields = [
        ("RateLimit-Limit", "1000"), ("RateLimit-Remaining", "0"), ("RateLimit-Reset", "80000"),
        ("RateLimit-Policy", "1000;w=86400"),
      ]
      try response.send(#"{"error":"RateLimitExceeded","message":"Rate Limit Exceeded"}"#)
    }
    var options = NetworkOptions(userAgent: "carpack-tests")
    options.allowsLoopback = true
    let client = XRPCClient(service: loopback.server.url, network: try Network(options))
    let upload = XRPCQuery.uploadBlob(RequestBody([1, 2, 3]), contentType: "image/x-any")
    do {
      _ = try await client.call(upload)
      Issue.record("it was taken")
    } catch let error as XRPCError {
      #expect(error.status == 429)
      // A daily limit is reported as such.
      #expect(error.wait.map { 79_000...80_000 ~= $0 } == true, "\(error.wait ?? -1)")
    }
    _ = try await client.call(.checkAccountStatus())
    #expect(loopback.server.log.count == 2)
  }

  @Test func `is sent once where that has something done`() async throws {
    let loopback = try Loopback { _, response in
      response.status = 500
      try response.send(#"{"error":"InternalServerError"}"#)
    }
    var options = NetworkOptions(userAgent: "carpack-tests")
    options.allowsLoopback = true
    let client = XRPCClient(service: loopback.server.url, network: try Network(options))
    await #expect(throws: XRPCError.self) {
      try await client.perform(.requestPLCOperationSignature())
    }
    #expect(loopback.server.log.count == 1)
    let request = try #require(loopback.server.log.first)
    #expect(request["content-type"] == nil)
  }
}
