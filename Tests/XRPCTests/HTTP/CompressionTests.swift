import HTTP
import StandIn
import Testing

@Suite struct `a compressed answer` {
  private func compressed(_ body: [UInt8], encoding: String = "gzip") throws -> Loopback {
    try Loopback { request, response in
      response.fields = [("Content-Encoding", encoding)]
      try response.send(body, type: "application/json")
    }
  }

  @Test func `comes out decompressed`() async throws {
    let body = content(300_000)
    let loopback = try compressed(Gzip.wrap(body))
    let (response, received) = try await loopback.get("/")
    #expect(received == body)
    #expect(response.contentLength == nil)
  }

  @Test func `waits for its reader like any other`() async throws {
    let body = content(3_000_000)
    let loopback = try compressed(Gzip.wrap(body))
    var received: [UInt8] = []
    for try await piece in try await loopback.begin("/").body {
      received += piece
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(received == body)
  }

  /// The code 285 in deflate's fixed alphabet is 11000101; written wrongly, nothing would come out
  /// and nothing be shown.
  @Test func `of zeros is what the test takes it for`() async throws {
    let loopback = try compressed(Gzip.zeros(2_000_000))
    let (_, zeros) = try await loopback.get("/")
    #expect(zeros.count >= 2_000_000)
    #expect(zeros.allSatisfy { $0 == 0 })
  }

  @Test func `counts by what it decompresses to`() async throws {
    let bomb = Gzip.zeros(64 << 20)
    #expect(bomb.count < 1 << 20)
    let loopback = try compressed(bomb)
    var options = NetworkOptions(userAgent: "test")
    options.allowsLoopback = true
    let error = await #expect(throws: TransportError.self) {
      _ = try await Network(options).get(loopback.server.url, limit: 1 << 20)
    }
    #expect(error?.reason == .tooLong(limit: 1 << 20))
  }

  @Test func `that is none is cut off`() async throws {
    let loopback = try compressed(Array("this is no gzip".utf8))
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    guard case .cutOff = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
  }

  @Test func `that ends too early is cut off`() async throws {
    let loopback = try Loopback { _, response in
      response.fields = [("Content-Encoding", "gzip")]
      response.distortion = .cut(at: 0.5)
      try response.send(Gzip.wrap(content(300_000)))
    }
    await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
  }
}
