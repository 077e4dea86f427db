import StandIn
import Synchronization
import Testing

@testable import HTTP

@Suite struct `A host that goes away and comes back` {
  private static let url = "https://pds.test/x"

  private static func refusal() -> TransportError {
    TransportError(.notConnected("refused"), url: url)
  }

  /// Asks a hundred times, sixteen at a time; returns the number of failures.
  private func failures(_ network: Network) async -> Int {
    await withTaskGroup(of: Bool.self) { group in
      for index in 0..<100 {
        if index >= 16 { _ = await group.next() }
        group.addTask { await isRefused(network) }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
  }

  private func isRefused(_ network: Network) async -> Bool {
    do { return try await network.get(Self.url, limit: 5).0.status != 200 } catch { return true }
  }

  /// A host that answers, is away for some time from then on, and returns again.
  private func scripted(
    awayFor seconds: Double, away: @escaping @Sendable () throws -> Int
  ) -> (Network, ScriptedTransport, VirtualClock, ScriptedNetwork.EventLog) {
    let clock = VirtualClock()
    let events = ScriptedNetwork.EventLog()
    let transport = ScriptedTransport { _, number in
      if number > 1, clock.now < seconds { return (try away(), [], []) }
      return (200, [], [])
    }
    var options = NetworkOptions(userAgent: "test")
    options.observer = { events.append($0) }
    return (
      Network(options, transport: transport, clock: clock, chance: { 1 }), transport, clock, events
    )
  }

  @Test(arguments: [20.0, 60, 140])
  func `is waited for by all, while one at a time tries it`(seconds: Double) async throws {
    let (network, transport, clock, events) = scripted(awayFor: seconds) { throw Self.refusal() }
    #expect(await !isRefused(network))
    #expect(await failures(network) == 0)
    #expect(clock.now >= seconds)
    // Sixteen found it away, and then one try after the other was made.
    #expect(transport.count < 101 + 16 + 30)
    #expect(events.waits.count == 1)
  }

  @Test func `is waited for if a proxy says that it does not answer`() async throws {
    let (network, _, _, _) = scripted(awayFor: 60) { 502 }
    #expect(await !isRefused(network))
    #expect(await failures(network) == 0)
  }

  @Test func `is not waited for for ever, and then left alone for a while`() async throws {
    let (network, transport, clock, _) = scripted(awayFor: 10_000) { throw Self.refusal() }
    #expect(await !isRefused(network))
    #expect(await isRefused(network))
    #expect(clock.now >= HostState.patience)
    let (count, moment) = (transport.count, clock.now)
    await #expect(throws: TransportError(.silent, url: Self.url)) {
      _ = try await network.get(Self.url, limit: 5)
    }
    #expect(transport.count == count)
    clock.advance(10_000 - moment)
    #expect(await !isRefused(network))
  }

  @Test(arguments: [("3600", 3600.0), ("7", 7)])
  func `is not waited for longer than the user wants, and says until when`(
    seconds: String, expected: Double
  ) async throws {
    let clock = VirtualClock()
    let transport = ScriptedTransport { _, _ in (429, [("retry-after", seconds)], []) }
    var options = NetworkOptions(userAgent: "test")
    options.longestWait = 5
    let network = Network(options, transport: transport, clock: clock, chance: { 1 })
    for _ in 0..<2 {
      let error = await #expect(throws: TransportError.self) {
        try await network.get(Self.url, limit: 5)
      }
      guard case .postponed(let wait)? = error?.reason else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect(wait == expected)
    }
    #expect(transport.count == 1 && clock.now == 0)
  }

  @Test func `is waited for as the server says as long as that is short`() async throws {
    let clock = VirtualClock()
    let transport = ScriptedTransport { _, number in
      number == 1 ? (429, [("retry-after", "4")], []) : (200, [], [])
    }
    var options = NetworkOptions(userAgent: "test")
    options.longestWait = 5
    let network = Network(options, transport: transport, clock: clock, chance: { 1 })
    #expect(await !isRefused(network))
    #expect(transport.count == 2 && clock.now >= 4)
  }

  @Test func `is not waited for by those who do not want to`() async throws {
    let (network, _, clock, _) = scripted(awayFor: 60) { throw Self.refusal() }
    #expect(await !isRefused(network))
    await #expect(throws: TransportError.self) {
      _ = try await network.get(Self.url, limit: 5, retries: false)
    }
    #expect(clock.now == 0)
  }

  @Test(arguments: [502, 503, 504])
  func `is not away because a service behind it fails`(_ status: Int) async throws {
    let clock = VirtualClock()
    let transport = ScriptedTransport { request, _ in
      request.isForwarded ? (status, [("Retry-After", "3600")], []) : (200, [], [])
    }
    var options = NetworkOptions(userAgent: "test")
    options.attempts = 1
    let network = Network(options, transport: transport, clock: clock, chance: { 1 })
    #expect(await !isRefused(network))
    for _ in 0..<40 {
      var request = HTTPRequest(.get, Self.url)
      request.isForwarded = true
      #expect(try await network.send(request) { _ in }.0.response.status == status)
    }
    #expect(await failures(network) == 0)
    #expect(clock.now == 0)
    #expect(network.gate(to: try HTTPURL(Self.url).authority).concurrency == 16)
  }

  @Test func `allows other requests while a service behind it allows none`() async throws {
    let clock = VirtualClock()
    let transport = ScriptedTransport { request, _ in
      request.isForwarded ? (429, [("Retry-After", "300")], []) : (200, [], [])
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: clock, chance: { 1 })
    var request = HTTPRequest(.get, Self.url)
    request.isForwarded = true
    #expect(try await network.send(request) { _ in }.0.response.status == 429)
    #expect(await !isRefused(network))
    #expect(clock.now == 0)
    #expect(transport.count == 2)
  }

  @Test func `is not away because a redirection of its leads to one that is`() async throws {
    let clock = VirtualClock()
    let transport = ScriptedTransport { _, number in
      if number > 1 { throw TransportError(.notConnected("refused"), url: "https://cdn.test/x") }
      return (200, [], [])
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: clock, chance: { 1 })
    #expect(await !isRefused(network))
    #expect(await isRefused(network))
    #expect(clock.now < 20)
  }

  @Test func `lets everybody stop waiting who is cancelled`() async throws {
    let (network, _, _, _) = scripted(awayFor: 10_000) { throw Self.refusal() }
    #expect(await !isRefused(network))
    let task = Task { try await network.get(Self.url, limit: 5) }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
    // Whoever tries next is not kept from it.
    #expect(await isRefused(network))
  }
}

@Suite struct `The deadline of a request` {
  private static let url = "https://pds.test/x"

  /// Asks with this many seconds for all of it; returns how it ended.
  private func ask(_ scripted: ScriptedNetwork, within seconds: Double) async throws
    -> TransportError.Reason?
  {
    var request = HTTPRequest(.get, Self.url)
    request.seconds = seconds
    do {
      _ = try await scripted.network.send(request) { _ in }
      return nil
    } catch let error as TransportError {
      return error.reason
    }
  }

  @Test(
    arguments: [
      (429, "20", 2), (503, "20", 2), (429, "31", 1), (503, "5", 6), (500, nil, 5),
    ] as [(Int, String?, Int)])
  func `ends waits and attempts, and nothing is waited for in vain`(
    status: Int, retryAfter: String?, count: Int
  ) async throws {
    let scripted = ScriptedNetwork { _, _ in
      (status, retryAfter.map { [(name: "retry-after", value: $0)] } ?? [], [])
    }
    let seconds = status == 500 ? 10.0 : 30
    #expect(try await ask(scripted, within: seconds) == .late(seconds: seconds))
    #expect(scripted.transport.count == count)
    #expect(scripted.clock.now < seconds)
  }

  @Test func `ends the wait for a host that is away`() async throws {
    let url = Self.url
    let scripted = ScriptedNetwork { _, number in
      if number > 1 { throw TransportError(.notConnected("refused"), url: url) }
      return (200, [], [])
    }
    #expect(try await ask(scripted, within: 60) == nil)
    #expect(try await ask(scripted, within: 60) == .late(seconds: 60))
    #expect(scripted.clock.now < 60)
    #expect(scripted.clock.now > 40)
  }

  @Test func `is none of others, who go on waiting`() async throws {
    let scripted = ScriptedNetwork { _, number in
      number < 3 ? (429, [(name: "retry-after", value: "20")], []) : (200, [], [])
    }
    #expect(try await ask(scripted, within: 5) == .late(seconds: 5))
    #expect(try await scripted.network.get(Self.url, limit: 1).0.status == 200)
  }

  @Test func `ends a transfer`() async throws {
    let loopback = try Loopback { _, response in
      response.distortion = .stalled(at: 0.5)
      try response.send([UInt8](repeating: 1, count: 1000))
    }
    var options = NetworkOptions(userAgent: "carpack-tests")
    options.allowsLoopback = true
    let network = try Network(options)
    var request = HTTPRequest(.get, loopback.server.url)
    request.seconds = 1
    let error = await #expect(throws: TransportError.self) {
      _ = try await network.send(request) { try await $0.read() }
    }
    // Otherwise it would be given up after 20 seconds, and tried again.
    #expect(error?.reason == .late(seconds: 1))
  }
}

@Suite struct `Places for transfers` {
  @Test func `are had in the order of asking, and no more than there are`() async throws {
    let places = Places(2)
    let most = Mutex((now: 0, most: 0))
    let work: @Sendable () async throws -> Void = {
      let seat = try await places.take()
      most.withLock {
        $0.now += 1
        $0.most = max($0.most, $0.now)
      }
      await Task.yield()
      most.withLock { $0.now -= 1 }
      seat.giveBack()
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<50 { group.addTask { try await work() } }
      try await group.waitForAll()
    }
    #expect(most.withLock { $0.most } <= 2)
  }

  @Test func `are not kept by those who stopped waiting`() async throws {
    let places = Places(1)
    let seat = try await places.take()
    let waiting = (0..<20).map { _ in Task { try await places.take() } }
    for task in waiting.dropFirst() { task.cancel() }
    for task in waiting.dropFirst() {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    seat.giveBack()
    _ = try await waiting[0].value
    places.resize(2)
    _ = try await places.take()
  }

  @Test func `are left to others by those who are slow, but not by too many`() async throws {
    let places = Places(1)
    var slow: [Places.Seat] = []
    for _ in 0..<2 {
      let seat = try await places.take()
      seat.leave()
      slow.append(seat)
    }
    let third = try await places.take()
    third.leave()
    let waiting = Task { try await places.take() }
    slow[0].giveBack()
    slow[0].giveBack()
    third.leave()
    let fourth = try await waiting.value
    third.giveBack()
    slow[1].giveBack()
    fourth.giveBack()
    _ = try await places.take()
  }
}
