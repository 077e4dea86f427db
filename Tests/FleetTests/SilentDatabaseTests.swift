import ATProtocol
import ObjectStore
import StandIn
import Synchronization
import Testing

@testable import Fleet
@testable import Postgres

/// Longer than a test may take: what has this limit is ended by something else.
private let forever: Duration = .seconds(3600)

/// Begins to wait twice, the second time after the first, and has both waits end by cancelling
/// them, the second first.
private func expectCancellation(
  of body: @escaping @Sendable () async throws -> Void, once hasBegun: () async throws -> Void
) async throws {
  let tasks = (0..<2).map { _ in Task(executorPreference: OwnThread()) { try await body() } }
  try await hasBegun()
  for task in tasks.reversed() {
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}

@Suite(.ownThread, .serialized, .timeLimit(.minutes(15)))
struct `A database that takes connections and says nothing` {
  private func withSilence(
    connectingWithin seconds: Int64 = forever.components.seconds,
    _ body: (Database, LoopbackRelay) async throws -> Void
  ) async throws {
    let relay = try LoopbackRelay(to: nil)
    defer { relay.stop() }
    let url = "postgres://x@127.0.0.1:\(relay.port)/x?connect_timeout=\(seconds)"
    try await body(Database(url), relay)
  }

  @Test func `is waited for no longer than was said`() async throws {
    try await withSilence { database, _ in
      await #expect(throws: DatabaseError.noAnswer) {
        try await database.ask("SELECT 1", within: .seconds(1))
      }
    }
  }

  @Test func `is given as long to connect as its address says`() async throws {
    // Longer than where the address says nothing.
    try await withSilence(connectingWithin: 6) { database, _ in
      let begin = ContinuousClock.now
      let error = await #expect(throws: DatabaseError.self) {
        try await database.ask("SELECT 1", within: forever)
      }
      #expect(error?.kind == .connection && error?.description.isEmpty == false)
      #expect(begin.duration(to: .now) > .seconds(4.9))
    }
  }

  @Test func `is asked again only while there is patience`() async throws {
    try await withSilence { database, _ in
      await #expect(throws: DatabaseError.noAnswer) {
        try await database.persistently("SELECT 1", for: .seconds(2), each: forever)
      }
    }
  }

  @Test func `holds up no task that is cancelled`() async throws {
    try await withSilence { database, relay in
      try await expectCancellation {
        try await database.ask("SELECT 1", within: forever)
      } once: {
        while relay.connectionCount == 0 { try await Task.sleep(for: .milliseconds(10)) }
      }
    }
  }
}

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `A database that has answered and says nothing more` {
  /// Has a way to the database fall silent, and something asked on it.
  private func expectCancellation(
    on relay: LoopbackRelay, of body: @escaping @Sendable () async throws -> Void
  ) async throws {
    relay.isSilent = true
    relay.forgetCalls()
    try await FleetTests.expectCancellation(of: body) {
      while relay.callCount == 0 { try await Task.sleep(for: .milliseconds(10)) }
    }
  }

  @Test func `is waited for no longer than was said, and used again when it speaks`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let database = Database(url)
      try await database.persistently("SELECT 1")
      relay.isSilent = true
      await #expect(throws: DatabaseError.noAnswer) {
        try await database.ask("SELECT 1", within: .seconds(1))
      }
      relay.isSilent = false
      #expect(try await database.persistently("SELECT 2", for: forever) == [["2"]])
    }
  }

  @Test func `holds up no task that is cancelled in the middle of a statement`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let database = Database(url)
      try await database.persistently("SELECT 1")
      try await expectCancellation(on: relay) {
        try await database.ask("SELECT 1", within: forever)
      }
    }
  }

  @Test func `does not take long answers for silence, however large`() async throws {
    try await SilentDatabase.withRelay { _, url, _ in
      let database = Database(url)
      let text = String(repeating: "x", count: 8 << 20)
      let rows = try await database.ask("SELECT $1::text", [text], within: forever)
      #expect(rows.count == 1 && rows.first == [text])
      let slow = try await database.ask("SELECT pg_sleep(1), 3", within: forever)
      #expect(slow.map { $0[1] } == ["3"])
    }
  }

  @Test func `has what was cancelled done before what is asked next`() async throws {
    try await TestDatabase.with { test in
      let (database, other) = (Database(test.url, grace: forever), Database(test.url))
      try await other.persistently("CREATE TABLE done (number integer)")
      try await other.persistently("SELECT pg_advisory_lock(1)")
      let task = Task(executorPreference: OwnThread()) {
        try await database.ask(
          "INSERT INTO done SELECT 1 FROM pg_advisory_lock(1)", within: forever)
      }
      let isWaiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      while try await other.persistently(isWaiting).isEmpty {}
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      try await other.persistently("SELECT pg_advisory_unlock(1)")
      #expect(try await database.ask("SELECT number FROM done", within: forever) == [["1"]])
    }
  }

  @Test func `is not asked later what is not waited for any more`() async throws {
    try await SilentDatabase.withRelay { test, url, relay in
      try await Database(test.url).persistently("CREATE TABLE done (number integer)")
      relay.isSilent = true
      let database = Database(url)
      for _ in 0..<2 {
        await #expect(throws: DatabaseError.noAnswer) {
          try await database.ask("INSERT INTO done VALUES (1)", within: .milliseconds(500))
        }
      }
      relay.isSilent = false
      #expect(try await database.persistently("SELECT count(*) FROM done") == [["0"]])
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

  @Test func `does not keep a worker from ending what it does before its lease runs out`()
    async throws
  {
    try await SilentDatabase.withRelay { _, url, relay in
      let (fleet, settings) = try await Self.fleet(url)
      let isEnded = Mutex(false)
      let tasks = FleetWorker.Tasks.simulated { _ in
        relay.isSilent = true
        defer { isEnded.withLock { $0 = true } }
        try await Task.sleep(for: forever)
        return FleetOutcome(.complete)
      }
      var options = FleetWorker.Options(name: "w")
      options.leaseSeconds = 3
      let counters = FleetCounters()
      let worker = FleetWorker(fleet, settings, options: options, tasks: tasks, counters: counters)
      let task = Task(executorPreference: OwnThread()) { try await worker.run() }
      while !isEnded.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(20)) }
      #expect(counters.values.lost == 1)
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test(arguments: [(1, 0.8), (30, 24), (50, 40), (120, 110), (3600, 3590)])
  func `leaves a worker time to end what it writes`(lease: Int, usable: Double) {
    #expect(FleetWorker.usable(.seconds(lease)) == .seconds(usable))
  }

  @Test func `holds up no request that is cancelled while it waits for a budget`() async throws {
    try await SilentDatabase.withRelay { _, url, relay in
      let (fleet, _) = try await Self.fleet(url)
      let budgets = HostBudgets(fleet, requestsPerSecond: 10)
      try await expectCancellation(on: relay) { try await budgets.admit("pds.example.com") }
    }
  }
}
