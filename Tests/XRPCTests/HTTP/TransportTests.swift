import HTTP
import StandIn
import Synchronization
import TestSupport
import Testing

/// What every test of the transport needs: a server, and a transport that may speak to it.
struct Loopback {
  let server: LoopbackServer
  let transport: CurlTransport

  init(
    _ change: (inout NetworkOptions) -> Void = { _ in }, handler: @escaping LoopbackServer.Handler
  ) throws {
    var options = NetworkOptions(userAgent: "carpack-tests")
    options.allowsLoopback = true
    options.stallSeconds = 20
    change(&options)
    server = try LoopbackServer(handler: handler)
    transport = try CurlTransport(options)
  }

  /// Sends a request, and reads all of the answer's body.
  func get(
    _ path: String, from offset: Int = 0, fields: [(name: String, value: String)] = [],
    compressed: Bool = true
  ) async throws -> (HTTPResponse, body: [UInt8]) {
    let response = try await begin(path, from: offset, fields: fields, compressed: compressed)
    return (response, try await response.read())
  }

  /// Sends a request; nobody has read the body yet.
  func begin(
    _ path: String, from offset: Int = 0, fields: [(name: String, value: String)] = [],
    compressed: Bool = true
  ) async throws -> HTTPResponse {
    var request = HTTPRequest(
      .get, server.url + path, fields: fields, acceptsCompression: compressed, isStreamed: true)
    request.isPrepared = true
    request.offset = UInt64(offset)
    return try await transport.send(request)
  }
}

extension HTTPResponse {
  /// All of the body.
  func read() async throws -> [UInt8] { try await body.collect(upTo: .max, of: url) }
}

/// Bytes that are not all the same.
func content(_ count: Int) -> [UInt8] {
  var random = SeededGenerator(seed: 31)
  return random.bytes(count)
}

@Suite struct `the transport` {
  @Test func `brings head and body, and names itself`() async throws {
    let body = content(1_000_000)
    let loopback = try Loopback { _, response in
      response.fields = [("X-Odd", " spaced  ")]
      try response.send(body, type: "image/png")
    }
    let (response, received) = try await loopback.get("/a?b=c")
    #expect(response.status == 200)
    #expect(response["x-odd"] == "spaced")
    #expect(response.contentLength == 1_000_000)
    #expect(received == body)
    let exchange = try #require(loopback.server.log.first)
    #expect(exchange["user-agent"] == "carpack-tests")
    #expect(exchange["accept-encoding"] == "gzip, deflate")
    #expect(exchange["cookie"] == nil)
  }

  @Test func `uses a connection again`() async throws {
    let loopback = try Loopback { _, response in try response.send("x") }
    for _ in 0..<5 { _ = try await loopback.get("/", compressed: false) }
    // Not always one: on a machine so busy that two minutes pass, an idle connection is closed.
    #expect(loopback.server.connectionCount < 5)
    #expect(loopback.server.log.last?["accept-encoding"] == nil)
  }

  @Test func `sends a body along, without waiting to be told`() async throws {
    let received = Mutex<LoopbackRequest?>(nil)
    let loopback = try Loopback { request, response in
      received.withLock { $0 = request }
      try response.send("{}")
    }
    let body = content(5000)
    _ = try await loopback.transport.send(
      HTTPRequest(
        .post, loopback.server.url + "/p", fields: [("Content-Type", "application/json")],
        body: body))
    let request = try #require(received.withLock { $0 })
    #expect(request.body == body)
    #expect(request["expect"] == nil)
    #expect(request["content-type"] == "application/json")
  }

  @Test(arguments: [400, 404, 429, 500])
  func `brings the body of an answer that is not one of success`(status: Int) async throws {
    let loopback = try Loopback { _, response in
      response.status = status
      try response.send("{\"error\":\"Odd\"}")
    }
    let (response, body) = try await loopback.get("/")
    #expect(response.status == status)
    #expect(String(decoding: body, as: UTF8.self) == "{\"error\":\"Odd\"}")
  }

  @Test func `reads no more of an endless error than is worth showing`() async throws {
    let loopback = try Loopback { _, response in
      response.status = 500
      response.distortion = .endless
      try response.send("oh")
    }
    var options = NetworkOptions(userAgent: "carpack-tests")
    options.allowsLoopback = true
    let (response, body) = try await Network(options).get(
      loopback.server.url, limit: 1 << 20, retries: false)
    #expect(response.status == 500)
    #expect(body.count == maximumErrorBody)
  }

  @Test func `letting go of a body ends its transfer`() async throws {
    let ended = AsyncStream<Void>.makeStream()
    let loopback = try Loopback { _, response in
      defer { ended.continuation.yield() }
      response.distortion = .endless
      try response.send("x", type: "text/plain")
    }
    var response: HTTPResponse? = try await loopback.begin("/")
    var iterator = response?.body.makeAsyncIterator()
    #expect(try await iterator?.next()?.isEmpty == false)
    (response, iterator) = (nil, nil)
    // The server notices.
    for await _ in ended.stream { break }
  }

  @Test(
    arguments: [
      Distortion.cut(at: 0.5), .reset(at: 0.5), .misannounced(by: 10), .cut(at: 0),
    ])
  func `a body that ends too early is cut off`(distortion: Distortion) async throws {
    let loopback = try Loopback { _, response in
      response.distortion = distortion
      try response.send(content(100_000))
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    guard case .cutOff = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(error?.isTransient == true)
  }

  @Test func `chunks without an end are cut off`() async throws {
    let loopback = try Loopback { _, response in
      response.distortion = .cut(at: 0.5)
      try response.send(content(100_000), framing: .chunked)
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    guard case .cutOff = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
  }

  @Test(arguments: [LoopbackResponse.Framing.chunked, .connection])
  func `takes a body whose length is not known`(framing: LoopbackResponse.Framing) async throws {
    let body = content(100_000)
    let loopback = try Loopback { _, response in try response.send(body, framing: framing) }
    let (response, received) = try await loopback.get("/")
    #expect(response.contentLength == nil)
    #expect(received == body)
  }

  @Test(arguments: [Distortion.stalled(at: 0.5), .stalled(at: 0), .dripping(bytesPerSecond: 2)])
  func `a transfer that stands still is given up`(distortion: Distortion) async throws {
    let loopback = try Loopback({ $0.stallSeconds = 1 }) { _, response in
      response.distortion = distortion
      try response.send(content(1000))
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .stalled(seconds: 1))
  }

  @Test func `a body that drips is not said to stand still`() async throws {
    let loopback = try Loopback({ $0.stallSeconds = 1 }) { _, response in
      response.distortion = .dripping(bytesPerSecond: 50)
      try response.send(content(60_000))
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(
      error?.what.contains(" of 60,000 bytes, and less than 256 bytes a second for 1 ") == true)
    #expect(error?.what.contains("nothing") == false)
  }

  @Test func `a server that never answers is given up`() async throws {
    let loopback = try Loopback({ $0.stallSeconds = 1 }) { _, response in
      try response.pauseForEver()
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .stalled(seconds: 1))
  }

  @Test func `a head without an end is refused`() async throws {
    let loopback = try Loopback { _, response in
      try response.sendRaw(Array("HTTP/1.1 200 OK\r\n".utf8))
      let field = Array("X-Filler: \(String(repeating: "a", count: 4000))\r\n".utf8)
      while true { try response.sendRaw(field) }
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    guard case .malformedAnswer = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
  }

  @Test func `a head that drips is given up`() async throws {
    let loopback = try Loopback({ $0.stallSeconds = 1 }) { _, response in
      try response.sendRaw(Array("HTTP/1.1 200 OK\r\n".utf8))
      while true {
        try response.sendRaw(Array("X-Filler: a\r\n".utf8))
        try response.pause(0.2)
      }
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    #expect(error?.reason == .stalled(seconds: 1))
  }

  @Test func `takes no hint for the answer, and no trailer for a part of it`() async throws {
    let loopback = try Loopback { _, response in
      let answer = [
        "HTTP/1.1 103 Early Hints", "Link: </x>", "", "HTTP/1.1 200 OK", "X-Real: yes",
        "X-Folded: a", "  b", "Transfer-Encoding: chunked", "", "3", "abc", "0", "X-Late: yes", "",
        "",
      ]
      try response.sendRaw(Array(answer.joined(separator: "\r\n").utf8))
      response.close()
    }
    let (response, body) = try await loopback.get("/")
    #expect(response.status == 200)
    #expect(response["x-real"] == "yes")
    #expect(response["x-folded"] == "a b")
    #expect(response["link"] == nil)
    #expect(response["x-late"] == nil)
    #expect(response.offset == 0)
    #expect(String(decoding: body, as: UTF8.self) == "abc")
  }

  @Test func `what is not HTTP is refused`() async throws {
    let loopback = try Loopback { _, response in
      try response.sendRaw(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))
      response.close()
    }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.get("/")
    }
    guard case .malformedAnswer = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
  }

  @Test func `a cancelled task ends the transfer`() async throws {
    let arrived = AsyncStream<Void>.makeStream()
    // On a busy machine it may be long until the task is cancelled.
    let loopback = try Loopback({ $0.stallSeconds = 600 }) { _, response in
      arrived.continuation.yield()
      try response.pauseForEver()
    }
    let task = Task { try await loopback.get("/") }
    for await _ in arrived.stream { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
    await #expect(throws: CancellationError.self) {
      let late = Task {
        while !Task.isCancelled { await Task.yield() }
        return try await loopback.get("/")
      }
      late.cancel()
      _ = try await late.value
    }
  }

  @Test func `a port where nobody listens is not connected to`() async throws {
    let loopback = try Loopback { _, _ in }
    let error = await #expect(throws: TransportError.self) {
      _ = try await loopback.transport.send(
        HTTPRequest(.get, "http://127.0.0.1:1/?q"))
    }
    guard case .notConnected = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
    #expect(error?.url == "http://127.0.0.1:1/")
  }

  @Test func `a transport that is let go of ends its thread, and a new one works`() async throws {
    for _ in 0..<20 {
      let loopback = try Loopback { _, response in try response.send("x") }
      _ = try await loopback.get("/")
    }
  }
}

@Suite struct `a body that nobody reads` {
  @Test func `holds the server up, does not stand still, and lets others through`() async throws {
    let body = content(40_000_000)
    let loopback = try Loopback({ $0.stallSeconds = 1 }) { request, response in
      try response.send(request.path == "/long" ? body : [1])
    }
    let long = try await loopback.begin("/long", compressed: false)
    // Longer than a stall may last.
    for _ in 0..<25 {
      _ = try await loopback.get("/short")
      try await Task.sleep(for: .milliseconds(100))
    }
    let sent = loopback.server.log.first { $0.path == "/long" }?.bytesSent ?? 0
    #expect(sent < body.count / 2)
    #expect(try await long.read() == body)
  }

  @Test func `comes whole, however slowly it is read`() async throws {
    let body = content(3_000_000)
    let loopback = try Loopback { _, response in try response.send(body) }
    var received: [UInt8] = []
    for try await piece in try await loopback.begin("/", compressed: false).body {
      #expect(!piece.isEmpty)
      received += piece
      try await Task.sleep(for: .milliseconds(5))
    }
    #expect(received == body)
  }

  @Test func `is broken off when its task is cancelled`() async throws {
    let loopback = try Loopback({ $0.stallSeconds = 600 }) { _, response in
      response.distortion = .stalled(at: 0.5)
      try response.send(content(1_000_000))
    }
    let response = try await loopback.begin("/", compressed: false)
    let task = Task { try await response.read() }
    try await Task.sleep(for: .milliseconds(50))
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }

  @Test func `brings what came before it broke off, and then why`() async throws {
    let body = content(1_000_000)
    let loopback = try Loopback { _, response in
      response.distortion = .cut(at: 0.5)
      try response.send(body)
    }
    var received: [UInt8] = []
    let error = await #expect(throws: TransportError.self) {
      for try await piece in try await loopback.begin("/", compressed: false).body {
        received += piece
      }
    }
    #expect(received.count >= 400_000)
    #expect(body.starts(with: received))
    guard case .cutOff = error?.reason else {
      Issue.record("it is \(String(describing: error))")
      return
    }
  }

  @Test func `says how much came before it stood still`() async throws {
    let loopback = try Loopback({ $0.stallSeconds = 1 }) { _, response in
      response.distortion = .stalled(at: 0)
      try response.send(content(12_879))
    }
    let error = await #expect(throws: TransportError.self) { _ = try await loopback.get("/") }
    #expect(error?.what == "0 of 12,879 bytes, then nothing for 1 seconds")
  }
}

@Suite struct `going on with a body` {
  let body = content(200_000)

  @Test func `asks for the rest`() async throws {
    let loopback = try Loopback { [body] request, response in
      guard request["range"] == "bytes=150000-" else { return try response.send([]) }
      response.status = 206
      response.fields = [("Content-Range", "bytes 150000-199999/200000")]
      try response.send(Array(body[150_000...]))
    }
    let (response, rest) = try await loopback.get("/", from: 150_000)
    #expect(response.status == 206)
    #expect(response.offset == 150_000)
    #expect(rest == Array(body[150_000...]))
    #expect(loopback.server.log.first?["accept-encoding"] == nil)
  }

  @Test func `takes the whole from a server that has no ranges`() async throws {
    let loopback = try Loopback { [body] _, response in try response.send(body) }
    let (response, whole) = try await loopback.get("/", from: 3)
    #expect(response.offset == 0)
    #expect(whole == body)
  }

  @Test(arguments: [
    (206, "bytes 0-199999/200000"), (206, "bytes 7-199999/200000"), (206, "odd"), (416, ""),
  ])
  func `asks for the whole when another part comes`(status: Int, range: String) async throws {
    let loopback = try Loopback { [body] request, response in
      if request["range"] != nil {
        response.status = status
        response.fields = [("Content-Range", range)]
        try response.send([9, 9, 9])
      } else {
        try response.send(body)
      }
    }
    let (response, whole) = try await loopback.get("/", from: 3)
    #expect(response.offset == 0)
    #expect(whole == body)
    #expect(loopback.server.log.count == 2)
  }

  @Test func `refuses a part that was not asked for`() async throws {
    let loopback = try Loopback { _, response in
      response.status = 206
      response.fields = [("Content-Range", "bytes 5-7/8")]
      try response.send([1, 2, 3])
    }
    await #expect(throws: TransportError.self) { _ = try await loopback.get("/") }
  }
}
