import ATProtocol
import Foundation
import ObjectStore
import StandIn
import Synchronization
import Testing

@testable import Fleet
@testable import Postgres

/// What happens when a database takes connections, or has taken them, and says nothing.
@Suite(.ownThread) struct `A database that says nothing` {
  /// How long it takes, and what comes of it.
  private static func time<Value>(_ body: () async throws -> Value) async -> (
    seconds: Double, result: Result<Value, any Error>
  ) {
    let begin = ContinuousClock.now
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    return (begin.duration(to: .now) / .seconds(1), result)
  }

  private static func isLost<Value>(_ result: Result<Value, any Error>) -> Bool {
    guard case .failure(let error as DatabaseError) = result else { return false }
    return error.kind == .connection && !error.description.isEmpty
  }

  private static func isCancelled<Value>(_ result: Result<Value, any Error>) -> Bool {
    guard case .failure(let error) = result else { return false }
    return error is CancellationError
  }

  /// A relay that never says anything, and a database behind it.
  private func withSilence(
    _ options: String = "", _ body: (Database, LoopbackRelay) async throws -> Void
  ) async throws {
    let relay = try LoopbackRelay(to: nil)
    defer { relay.stop() }
    try await body(Database("postgres://x@127.0.0.1:\(relay.port)/x\(options)"), relay)
  }

  private func waitForConnection(_ relay: LoopbackRelay) async throws {
    while relay.connectionCount == 0 { try await Task.sleep(for: .milliseconds(10)) }
  }

  // MARK: While connecting

  @Test(.timeLimit(.minutes(1))) func `is waited for no longer than was said`() async throws {
    try await withSilence { database, _ in
      let (seconds, result) = await Self.time {
        try await database.ask("SELECT 1", within: .seconds(1))
      }
      #expect(Self.isLost(result), "\(result)")
      #expect((0.9...20).contains(seconds), "\(seconds) s")
    }
  }

  @Test(.timeLimit(.minutes(1))) func `is given as long to connect as its address says`()
    async throws
  {
    try await withSilence("?connect_timeout=2") { database, _ in
      let (seconds, result) = await Self.time { try await database.ask("SELECT 1") }
      #expect(Self.isLost(result), "\(result)")
      #expect((1...20).contains(seconds), "\(seconds) s")
    }
  }

  @Test(.timeLimit(.minutes(1))) func `ends all attempts together when patience has an end`()
    async throws
  {
    try await withSilence { database, _ in
      let (seconds, result) = await Self.time {
        try await database.persistently("SELECT 1", for: .seconds(2))
      }
      #expect(Self.isLost(result), "\(result)")
      #expect((1.5...20).contains(seconds), "\(seconds) s")
    }
  }

  @Test(.timeLimit(.minutes(1))) func `holds up no task that is cancelled`() async throws {
    try await withSilence { database, relay in
      // The second waits behind the first.
      let tasks = (0..<2).map { _ in
        Task(executorPreference: OwnThread()) { try await database.persistently("SELECT 1") }
      }
      try await waitForConnection(relay)
      for task in tasks {
        let (seconds, result) = await Self.time {
          task.cancel()
          return try await task.value
        }
        #expect(Self.isCancelled(result), "\(result)")
        #expect(seconds < 10, "\(seconds) s")
      }
    }
  }

  // MARK: After it has answered

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `is waited for no longer than was said, and used again when it speaks`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let database = Database(url)
      try await database.ask("SELECT 1")
      relay.isSilent = true
      let (seconds, result) = await Self.time {
        try await database.ask("SELECT 1", within: .seconds(1))
      }
      #expect(Self.isLost(result), "\(result)")
      #expect((0.9...20).contains(seconds), "\(seconds) s")
      relay.isSilent = false
      #expect(try await database.persistently("SELECT 2", for: .seconds(30)) == [["2"]])
    }
  }

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `holds up no task that is cancelled in the middle of a statement`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let database = Database(url)
      try await database.ask("SELECT 1")
      relay.isSilent = true
      let tasks = (0..<2).map { _ in
        Task(executorPreference: OwnThread()) { try await database.ask("SELECT 1") }
      }
      try await Task.sleep(for: .milliseconds(200))
      for task in tasks {
        let (seconds, result) = await Self.time {
          task.cancel()
          return try await task.value
        }
        #expect(Self.isCancelled(result), "\(result)")
        #expect(seconds < 10, "\(seconds) s")
      }
    }
  }

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `does not take long answers for silence, however large`() async throws {
    try await SilentDatabase.withRelay { _, url, _ in
      let database = Database(url)
      let text = String(repeating: "x", count: 8 << 20)
      let rows = try await database.ask("SELECT $1::text", [text])
      #expect(rows.count == 1 && rows.first == [text])
      #expect(try await database.ask("SELECT pg_sleep(1), 3").map { $0[1] } == ["3"])
    }
  }

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `has what was cancelled done before what is asked next`() async throws {
    try await TestDatabase.with { test in
      let database = Database(test.url)
      try await database.ask("CREATE TABLE done (number integer)")
      let task = Task(executorPreference: OwnThread()) {
        try await database.ask("INSERT INTO done SELECT 1 FROM pg_sleep(0.2)")
      }
      try await Task.sleep(for: .milliseconds(100))
      task.cancel()
      #expect(Self.isCancelled(await task.result))
      #expect(try await database.ask("SELECT number FROM done") == [["1"]])
    }
  }

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `is not asked later what nobody waits for any more`() async throws {
    try await SilentDatabase.withRelay { test, url, relay in
      try await Database(test.url).ask("CREATE TABLE done (number integer)")
      relay.isSilent = true
      let database = Database(url)
      for _ in 0..<2 {
        await #expect(throws: DatabaseError.noAnswer) {
          try await database.ask("INSERT INTO done VALUES (1)", within: .milliseconds(500))
        }
      }
      relay.isSilent = false
      #expect(try await database.ask("SELECT count(*) FROM done") == [["0"]])
    }
  }

  // MARK: Workers

  private static func fleet(_ url: String) async throws -> (FleetDatabase, FleetSettings) {
    let fleet = FleetDatabase(url)
    let settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
    try await fleet.initialize(settings)
    _ = try await fleet.add([try DID("did:web:held.example.com")])
    return (fleet, settings)
  }

  private final class Times: Sendable {
    let begun = Mutex<ContinuousClock.Instant?>(nil)
    let ended = Mutex<ContinuousClock.Instant?>(nil)
  }

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `does not keep a worker from seeing that its lease has run out`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let (fleet, settings) = try await Self.fleet(url)
      let times = Times()
      let tasks = FleetWorker.Tasks.simulated { _ in
        times.begun.withLock { $0 = .now }
        relay.isSilent = true
        defer { times.ended.withLock { $0 = .now } }
        try await Task.sleep(for: .seconds(60))
        return FleetOutcome(.complete)
      }
      var options = FleetWorker.Options(name: "w")
      options.leaseSeconds = 3
      let counters = FleetCounters()
      let worker = FleetWorker(fleet, settings, options: options, tasks: tasks, counters: counters)
      let task = Task(executorPreference: OwnThread()) { try await worker.run() }
      while counters.values.lost == 0 { try await Task.sleep(for: .milliseconds(20)) }
      let begun = try #require(times.begun.withLock { $0 })
      let ended = try #require(times.ended.withLock { $0 })
      let seconds = begun.duration(to: ended) / .seconds(1)
      // Before the lease of three seconds runs out.
      #expect((1...2.9).contains(seconds), "\(seconds) s")
      let (wait, result) = await Self.time {
        task.cancel()
        try await task.value
      }
      #expect(Self.isCancelled(result), "\(result)")
      #expect(wait < 2, "\(wait) s")
    }
  }

  @Test(
    .timeLimit(.minutes(1)),
    .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
  func `holds up no request that is cancelled while it waits for a budget`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let (fleet, _) = try await Self.fleet(url)
      let budgets = HostBudgets(fleet, requestsPerSecond: 10)
      relay.isSilent = true
      let first = Task(executorPreference: OwnThread()) {
        try await budgets.admit("pds.example.com")
      }
      let second = Task(executorPreference: OwnThread()) {
        try await budgets.admit("pds.example.com")
      }
      try await Task.sleep(for: .milliseconds(200))
      // The one that does not ask itself, and then the one that does.
      for task in [second, first] {
        let (seconds, result) = await Self.time {
          task.cancel()
          try await task.value
        }
        #expect(Self.isCancelled(result), "\(result)")
        #expect(seconds < 10, "\(seconds) s")
      }
    }
  }
}
