import StandIn
import Synchronization
import Testing

@testable import HTTP

/// A network whose server is a script, and whose time passes by itself.
struct ScriptedNetwork {
  let clock = VirtualClock()
  let transport: ScriptedTransport
  let network: Network
  let events = EventLog()

  init(
    _ change: (inout NetworkOptions) -> Void = { _ in },
    _ script: @escaping ScriptedTransport.Script
  ) {
    transport = ScriptedTransport(script)
    var options = NetworkOptions(userAgent: "test")
    options.observer = { [events] event in events.append(event) }
    change(&options)
    network = Network(options, transport: transport, clock: clock, chance: { 1 })
  }

  final class EventLog: Sendable {
    private let events = Mutex<[NetworkEvent]>([])
    func append(_ event: NetworkEvent) { events.withLock { $0.append(event) } }
    var all: [NetworkEvent] { events.withLock { $0 } }
    var retries: [Double] {
      all.compactMap { if case .retry(_, let seconds, _) = $0 { seconds } else { nil } }
    }
    var waits: [Double] {
      all.compactMap { if case .wait(_, let seconds, _) = $0 { seconds } else { nil } }
    }
  }
}

@Suite struct `the network` {
  private let url = "https://pds.test/x"

  @Test func `gives a document, whatever the status is`() async throws {
    let scripted = ScriptedNetwork { _, _ in (404, [], Array("gone".utf8)) }
    let (response, body) = try await scripted.network.get(url, limit: 10, accept: "text/plain")
    #expect(response.status == 404)
    #expect(body == Array("gone".utf8))
    #expect(scripted.transport.log.first?.fields.first?.value == "text/plain")
    #expect(scripted.transport.count == 1)
  }

  @Test func `gives no document that is too long`() async throws {
    let scripted = ScriptedNetwork { _, _ in (200, [], [UInt8](repeating: 0, count: 11)) }
    await #expect(throws: TransportError(.tooLong(limit: 10), url: url)) {
      _ = try await scripted.network.get(url, limit: 10)
    }
    #expect(scripted.transport.count == 1)
    _ = try await scripted.network.get(url, limit: 11)
  }

  @Test func `tries again what may pass, longer and longer, and then gives up`() async throws {
    let scripted = ScriptedNetwork { _, _ in (500, [], []) }
    let (delivery, value) = try await scripted.network.send(HTTPRequest(.get, url)) { _ in 1 }
    #expect(value == nil)
    #expect(delivery.response.status == 500)
    #expect(delivery.attempts == 6)
    #expect(scripted.transport.count == 6)
    #expect(scripted.clock.now == 15.5)
    #expect(scripted.events.retries == [0.5, 1, 2, 4, 8])
  }

  @Test func `tries again when nothing came, and throws the last of it`() async throws {
    let url = url
    let scripted = ScriptedNetwork { _, _ in throw TransportError(.cutOff("odd"), url: url) }
    var expected = TransportError(.cutOff("odd"), url: url)
    expected.attempts = 6
    await #expect(throws: expected) { _ = try await scripted.network.get(url, limit: 1) }
    #expect("\(expected)" == "https://pds.test/x: the answer was cut off: odd (6 attempts)")
  }

  @Test(arguments: [400, 401, 403, 404, 501])
  func `does not try again what stays`(status: Int) async throws {
    let scripted = ScriptedNetwork { _, _ in (status, [], []) }
    _ = try await scripted.network.get(url, limit: 1)
    #expect(scripted.transport.count == 1)
  }

  @Test func `does not try again when that is not wanted`() async throws {
    let scripted = ScriptedNetwork { _, _ in (500, [], []) }
    _ = try await scripted.network.get(url, limit: 1, retries: false)
    #expect(scripted.transport.count == 1)
  }

  @Test func `does not try again what the receiver or an address rule has refused`() async throws {
    let url = url
    let scripted = ScriptedNetwork { _, number in
      if number == 1 { throw TransportError(.refusedAddress("10.0.0.1"), url: url) }
      return (200, [], [1, 2, 3])
    }
    await #expect(throws: TransportError(.refusedAddress("10.0.0.1"), url: url)) {
      _ = try await scripted.network.get(url, limit: 5)
    }
    struct Full: Error {}
    await #expect(throws: Full.self) {
      _ = try await scripted.network.send(HTTPRequest(.get, url)) { _ in throw Full() }
    }
    #expect(scripted.transport.count == 2)
  }

  @Test func `ends when it fails once and works then`() async throws {
    let scripted = ScriptedNetwork { _, number in number < 4 ? (503, [], []) : (200, [], [7]) }
    let (response, body) = try await scripted.network.get(url, limit: 5)
    #expect(response.status == 200)
    #expect(body == [7])
    #expect(scripted.transport.count == 4)
  }

  @Test func `waits as long as a server says, however often, before attempts count`() async throws {
    let scripted = ScriptedNetwork { _, number in
      number <= 20 ? (429, [(name: "retry-after", value: "7")], []) : (200, [], [7])
    }
    let (response, _) = try await scripted.network.get(url, limit: 5)
    #expect(response.status == 200)
    #expect(scripted.transport.count == 21)
    #expect(abs(scripted.clock.now - 140) < 1)
  }

  @Test(arguments: [nil, "0", "1", "9999999999"])
  func `gives up on a server that refuses for ever`(retryAfter: String?) async throws {
    let scripted = ScriptedNetwork { _, _ in
      (429, retryAfter.map { [(name: "retry-after", value: $0)] } ?? [], [])
    }
    do {
      let (response, _) = try await scripted.network.get(url, limit: 5)
      #expect(response.status == 429)
    } catch let error as TransportError {
      #expect(error.reason == .overloaded)
    }
    #expect(scripted.transport.count <= 40)
    #expect(scripted.clock.naps.allSatisfy { $0 >= 0.01 && $0 <= RateLimitFields.longestWait })
    // Others need not find that out again themselves.
    let before = scripted.transport.count
    for _ in 0..<100 {
      do { _ = try await scripted.network.get(url, limit: 5) } catch is TransportError {}
    }
    #expect(scripted.transport.count - before <= 40)
  }

  @Test func `does not wait for a dead host again and again`() async throws {
    let url = url
    let isDead = Mutex(true)
    let scripted = ScriptedNetwork { _, _ in
      if isDead.withLock({ $0 }) { throw TransportError(.notConnected("refused"), url: url) }
      return (200, [], [])
    }
    var reasons: [TransportError.Reason] = []
    for _ in 0..<100 {
      do { _ = try await scripted.network.get(url, limit: 5) } catch let error as TransportError {
        reasons.append(error.reason)
      }
    }
    #expect(reasons.first == .notConnected("refused"))
    #expect(reasons.last == .silent)
    #expect(scripted.transport.count < 60)
    // It comes back.
    isDead.withLock { $0 = false }
    await #expect(throws: TransportError.self) { _ = try await scripted.network.get(url, limit: 5) }
    scripted.clock.advance(60)
    for _ in 0..<3 { _ = try await scripted.network.get(url, limit: 5) }
  }

  @Test func `waits for a host that is restarted`() async throws {
    let url = url
    let clock = VirtualClock()
    let transport = ScriptedTransport { _, _ in
      if clock.now < 10 { throw TransportError(.notConnected("refused"), url: url) }
      return (200, [], [])
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: clock, chance: { 1 })
    let failures = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<100 {
        group.addTask {
          do { return try await network.get(url, limit: 5).0.status != 200 } catch { return true }
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(failures == 0)
  }

  @Test func `a server with a small window is asked for no more than that, and everything comes`()
    async throws
  {
    // Ten requests in a hundred seconds, as the reference server counts and says it.
    let window = Mutex<(start: Double, count: Int)>((0, 0))
    let refused = Mutex(0)
    let clock = VirtualClock()
    let transport = ScriptedTransport { _, _ in
      let (count, reset) = window.withLock { window in
        if clock.now >= window.start + 100 { window = (clock.now, 0) }
        window.count += 1
        return (window.count, window.start + 100)
      }
      for _ in 0..<3 { await Task.yield() }
      let fields = [
        (name: "ratelimit-limit", value: "10"),
        (name: "ratelimit-remaining", value: "\(max(0, 10 - count))"),
        (name: "ratelimit-reset", value: "\(Int((clock.start + reset).rounded(.up)))"),
        (name: "ratelimit-policy", value: "10;w=100"),
      ]
      if count > 10 { refused.withLock { $0 += 1 } }
      return (count > 10 ? 429 : 200, fields, [1])
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: clock, chance: { 1 })
    let done = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<200 {
        group.addTask { try await network.get("https://pds.test/x", limit: 5).0.status }
      }
      return try await group.reduce(0) { $0 + ($1 == 200 ? 1 : 0) }
    }
    #expect(done == 200)
    // Only requests that were sent before the first answer could exceed the limit.
    #expect(refused.withLock { $0 } <= 16)
    #expect(clock.now >= 1800)
  }

  @Test func `says what it asked for, and what came of it`() async throws {
    let scripted = ScriptedNetwork { _, _ in (200, [], []) }
    _ = try await scripted.network.get(url + "?did=did%3Aplc%3Ax", limit: 5)
    guard case .request(let method, let url, let outcome, _) = scripted.events.all.first else {
      Issue.record("it says nothing")
      return
    }
    #expect(method == "GET")
    #expect(url == "https://pds.test/x?did=did%3Aplc%3Ax")
    #expect(outcome == "status 200")
  }

  @Test func `stops waiting when the task is cancelled`() async throws {
    let scripted = ScriptedNetwork { _, _ in
      (429, [(name: "retry-after", value: "100")], [])
    }
    let task = Task { try await scripted.network.get("https://pds.test/x", limit: 5) }
    while scripted.transport.count == 0 { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }
}

@Suite struct `the limits of a host` {
  private func spend(_ count: Int, _ host: String, _ change: (inout NetworkOptions) -> Void)
    async throws -> ScriptedNetwork
  {
    let scripted = ScriptedNetwork(change) { _, _ in (200, [], []) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        // Different accounts of one host share it.
        group.addTask { _ = try await scripted.network.get("\(host)/\(index)", limit: 5) }
      }
      try await group.waitForAll()
    }
    return scripted
  }

  @Test func `lets a small account through at once, and slows a fleet down`() async throws {
    let small = try await spend(3000, "https://pds.test") { _ in }
    #expect(small.clock.now == 0)
    let fleet = try await spend(3100, "https://pds.test") { _ in }
    #expect(fleet.clock.now >= 9.9)
  }

  @Test func `does not count for this machine, unless that is wanted`() async throws {
    let local = try await spend(4000, "http://127.0.0.1:9") { _ in }
    #expect(local.clock.now == 0)
    let limited = try await spend(100, "http://127.0.0.1:9") { $0.requestsPerSecond = 5 }
    #expect(limited.clock.now >= 18.9)
    #expect(limited.clock.now < 60)
  }

  @Test func `has the burst that is set`() async throws {
    let scripted = try await spend(100, "https://pds.test") {
      $0.requestsPerSecond = 1
      $0.burst = 90
    }
    #expect(scripted.clock.now >= 9.9)
    #expect(scripted.clock.now < 40)
  }

  @Test func `is another one for another host`() async throws {
    let scripted = ScriptedNetwork({ $0.requestsPerSecond = 0.001 }) { _, _ in (200, [], []) }
    for host in 0..<50 { _ = try await scripted.network.get("https://h\(host).test/", limit: 5) }
    #expect(scripted.clock.now == 0)
  }

  @Test func `has so many under way and no more, fewer when it is too much, and more again`()
    async throws
  {
    let underWay = Mutex((now: 0, most: 0, overload: false))
    let scripted = ScriptedNetwork({ $0.connectionsPerHost = 8 }) { _, _ in
      let isOverloaded = underWay.withLock { state in
        state.now += 1
        state.most = max(state.most, state.now)
        return state.overload
      }
      for _ in 0..<5 { await Task.yield() }
      underWay.withLock { $0.now -= 1 }
      return (isOverloaded ? 503 : 200, [], [])
    }
    func run(_ count: Int) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<count {
          group.addTask {
            _ = try await scripted.network.get("https://pds.test/", limit: 5, retries: false)
          }
        }
        try await group.waitForAll()
      }
    }
    let gate = scripted.network.gate(to: Authority(host: "pds.test", port: 443))
    try await run(50)
    #expect(underWay.withLock { $0.most } <= 8)
    #expect(gate.concurrency == 8)
    underWay.withLock { $0.overload = true }
    try await run(1)
    #expect(gate.concurrency == 4)
    try await run(2)
    #expect(gate.concurrency <= 2)
    underWay.withLock { $0 = (0, 0, false) }
    try await run(2)
    #expect(underWay.withLock { $0.most } <= 2)
    try await run(100)
    #expect(gate.concurrency == 8)
  }

  @Test func `stays wide for a host that fails now and then`() async throws {
    let scripted = ScriptedNetwork({ $0.attempts = 20 }) { _, number in
      (number % 5 == 0 ? 503 : 200, [], [])
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<1000 {
        group.addTask {
          let (response, _) = try await scripted.network.get("https://pds.test/", limit: 5)
          #expect(response.status == 200)
        }
      }
      try await group.waitForAll()
    }
    let gate = scripted.network.gate(to: Authority(host: "pds.test", port: 443))
    #expect(gate.concurrency >= 4)
    #expect(scripted.transport.count == 1249)
  }

  @Test func `holds all back when one is told to wait`() async throws {
    let scripted = ScriptedNetwork { _, number in
      number == 1 ? (503, [(name: "retry-after", value: "50")], []) : (200, [], [])
    }
    _ = try await scripted.network.get("https://pds.test/a", limit: 5, retries: false)
    #expect(scripted.clock.now == 0)
    _ = try await scripted.network.get("https://pds.test/b", limit: 5)
    #expect(scripted.clock.now == 50)
    _ = try await scripted.network.get("https://other.test/b", limit: 5)
    #expect(scripted.clock.now == 50)
    #expect(scripted.events.waits == [50])
  }
}
