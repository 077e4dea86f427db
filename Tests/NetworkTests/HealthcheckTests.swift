import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A health check` {
  private static let secret = "5f8a1c2e-secret"

  /// A service that answers so, and writes down what it is asked.
  private func service(
    _ answer: @escaping @Sendable (LoopbackResponse) throws -> Void = { try $0.send("OK") }
  ) throws -> LoopbackServer {
    try LoopbackServer { _, response in try answer(response) }
  }

  private func asked(_ service: LoopbackServer) -> [String] {
    service.log.map { exchange in
      let query = exchange.query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
      return exchange.path + (query.isEmpty ? "" : "?\(query)")
    }
  }

  @Test func `is asked for the URL after success, and for it with the status otherwise`() throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let service = try service()
    let option = "--healthcheck \(service.url)/\(Self.secret)"
    #expect(try scene.backUp(option).status == 0)
    #expect(asked(service) == ["/\(Self.secret)"])
    let exchange = try #require(service.log.first)
    #expect(exchange.method == "GET")
    #expect(try scene.command.run("carpack backup alice.invalid \(option)/").status == 69)
    #expect(try scene.command.run("carpack backup alice.invalid \(option)?create=1").status == 69)
    #expect(
      asked(service) == ["/\(Self.secret)", "/\(Self.secret)/69", "/\(Self.secret)/69?create=1"])
  }

  @Test func `may be set in the configuration, and says nothing of what was backed up`() throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let service = try service()
    try scene.command.configure("[backup]\nhealthcheck = '\(service.url)/\(Self.secret)'\n")
    let result = try scene.backUp("--verbose")
    #expect(result.status == 0)
    #expect(asked(service) == ["/\(Self.secret)"])
    let fields = try #require(service.log.first).fields
    #expect(
      Set(fields.map(\.name)).isSubset(of: ["host", "user-agent", "accept", "accept-encoding"]))
    #expect(!"\(fields)".contains(scene.account.did))
    #expect(!(result.text + result.errors).contains(Self.secret))
    #expect(try scene.backUp("--dry-run").status == 0)
    #expect(asked(service).count == 1)
  }

  @Test(arguments: [
    (500, "fail", "answered with status 500"), (302, "", "answered with status 302"),
    (200, "OK (not found)", "knows no such check"), (200, "OK (rate limited)", "limits requests"),
  ]) func `that does not take it is said, and changes no status`(
    status: Int, body: String, words: String
  ) throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let other = try service()
    let target = "\(other.url)/elsewhere"
    let service = try service {
      $0.status = status
      $0.fields.append(("Location", target))
      try $0.send(body)
    }
    let result = try scene.backUp("--healthcheck \(service.url)/\(Self.secret)")
    #expect(result.status == 0)
    #expect(
      result.errors.contains("carpack: warning: could not report the result to the health check"),
      "\(result.errors)")
    #expect(result.errors.contains(words), "\(result.errors)")
    #expect(!(result.text + result.errors).contains(Self.secret))
    #expect(asked(other).isEmpty)
    // Only temporary failures are retried.
    #expect(asked(service).count == (status == 500 ? 3 : 1))
  }

  @Test func `that is not there is said without its URL`() throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let gone = try service()
    let url = "\(gone.url)/\(Self.secret)"
    gone.stop()
    let result = try scene.backUp("--healthcheck \(url) --verbose --json")
    #expect(result.status == 0)
    #expect(result.errors.contains("no connection"), "\(result.errors)")
    #expect(!(result.text + result.errors).contains(Self.secret))
    #expect(!(result.text + result.errors).contains(":\(gone.port)"))
    #expect(OutputSchema.faults(in: result.errors).isEmpty)
  }

  @Test(arguments: [
    "http://example.com/uuid", "ftp://example.com/uuid", "uuid", "https://a:b@example.com/uuid",
    "https://example.com/uuid#x", "https:///uuid",
  ]) func `is refused before anything is asked, unless by https or to this machine`(
    url: String
  ) throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let result = try scene.backUp("--healthcheck '\(url)'")
    #expect(result.status == 64)
    #expect(!result.errors.contains("uuid"), "\(result.errors)")
    #expect(scene.server.server.log.isEmpty)
  }

  @Test func `that never answers is given up`() throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let service = try LoopbackServer { _, _ in Thread.sleep(forTimeInterval: 60) }
    let begin = ContinuousClock.now
    let result = try scene.backUp("--healthcheck \(service.url)/\(Self.secret)")
    #expect(result.status == 0)
    #expect(result.errors.contains("no answer"), "\(result.errors)")
    #expect(ContinuousClock.now - begin < .seconds(50))
  }

  @Test func `is told of an interruption`() throws {
    let scene = try NetworkScene(posts: 3, blobs: 1)
    let service = try service()
    scene.server.play(FaultRule(.silent, on: "getRepo"))
    let running = try scene.command.start(
      scene.line("--healthcheck \(service.url)/\(Self.secret)"))
    let limit = ContinuousClock.now + .seconds(30)
    while scene.requestCount(of: "getRepo") == 0, .now < limit {
      Thread.sleep(forTimeInterval: 0.02)
    }
    running.signal(SIGINT)
    #expect(try running.wait().status == 130)
    #expect(asked(service) == ["/\(Self.secret)/130"])
  }
}
