import ATProtocol
import Foundation
import ObjectStore
import Synchronization
import TestSupport
import Testing

@testable import Fleet

@Suite(
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The database of a fleet` {
  private static func dids(_ count: Int) throws -> [DID] {
    try (0..<count).map { try DID("did:web:account-\($0).example.com") }
  }

  private final class Taken: Sendable { let dids = Mutex<[DID]>([]) }
  private final class Sent: Sendable { let count = Mutex(0) }

  /// A fleet with so many accounts.
  private func withFleet(
    _ count: Int, every: Int = 86_400, onChange: Bool = false,
    _ body: (FleetDatabase, TestDatabase) async throws -> Void
  ) async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      var settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      (settings.every, settings.onChange) = (every, onChange)
      try await fleet.initialize(settings)
      #expect(try await fleet.settings() == settings)
      #expect(try await fleet.add(Self.dids(count)) == count)
      try await body(fleet, database)
    }
  }

  @Test func `is named where there is none`() async throws {
    try await TestDatabase.with { database in
      let error = await #expect(throws: DatabaseError.self) {
        try await FleetDatabase(database.url).settings()
      }
      #expect(error?.kind == .noFleet)
    }
  }

  @Test func `gives an account to one worker at a time`() async throws {
    try await withFleet(50) { fleet, database in
      let taken = Taken()
      let url = database.url
      try await withThrowingDiscardingTaskGroup { group in
        for worker in 0..<5 {
          group.addTask {
            let own = FleetDatabase(url)
            while true {
              let leases = try await own.take(3, holder: "w\(worker)", seconds: 60)
              if leases.isEmpty { return }
              taken.dids.withLock { $0 += leases.map(\.did) }
            }
          }
        }
      }
      #expect(taken.dids.withLock { $0.count } == 50)
      #expect(Set(taken.dids.withLock { $0 }).count == 50)
      #expect(try await fleet.status().running == 50)
    }
  }

  @Test func `lets another worker take what one has held for too long, and believes it alone`()
    async throws
  {
    try await withFleet(1) { fleet, _ in
      let first = try #require(try await fleet.take(1, holder: "first", seconds: 60).first)
      #expect(try await fleet.take(1, holder: "second", seconds: 60).isEmpty)
      #expect(try await fleet.renew(first, seconds: 60))
      try await fleet.database.ask(
        "UPDATE carpack.account SET leased_until = now() - interval '1 second'")
      let second = try #require(try await fleet.take(1, holder: "second", seconds: 60).first)
      #expect(try await !fleet.renew(first, seconds: 60))
      try await fleet.end(first, FleetOutcome(.failed, reason: "too late"))
      #expect(try await fleet.status().outcomes.map(\.name) == ["never"])
      try await fleet.end(second, FleetOutcome(.complete))
      #expect(try await fleet.status().outcomes.map(\.name) == ["complete"])
      #expect(try await fleet.take(1, holder: "third", seconds: 60).isEmpty)
    }
  }

  @Test func `gives what is let go of to the next at once`() async throws {
    try await withFleet(1) { fleet, _ in
      #expect(try await fleet.take(1, holder: "first/1", seconds: 60).count == 1)
      try await fleet.release(heldBy: "firs_/")
      #expect(try await fleet.take(1, holder: "second/1", seconds: 60).isEmpty)
      try await fleet.release(heldBy: "first/")
      #expect(try await fleet.take(1, holder: "second/1", seconds: 60).count == 1)
    }
  }

  @Test func `has a failure tried again, with its reason and the time`() async throws {
    try await withFleet(1) { fleet, _ in
      for attempt in 1...3 {
        try await fleet.database.ask("UPDATE carpack.account SET due = now()")
        let lease = try #require(try await fleet.take(1, holder: "w\(attempt)", seconds: 60).first)
        try await fleet.end(lease, FleetOutcome(.failed, kind: "odd", reason: "it's \"odd\""))
        let next = try #require(try await fleet.secondsToNext())
        let expected = 30.0 * pow(2, Double(attempt))
        #expect((expected * 0.4...expected * 1.3).contains(next), "\(attempt): \(next)")
      }
      let status = try await fleet.status()
      #expect(status.failures.map(\.reason) == ["it's \"odd\""])
      #expect(status.failures.first?.nextTry != nil)
      #expect(status.reasons.map(\.name) == ["odd"])
    }
  }

  @Test func `asks once a day for an account that is not to be had, and keeps its archive`()
    async throws
  {
    try await withFleet(1, every: 60) { fleet, _ in
      let lease = try #require(try await fleet.take(1, holder: "w", seconds: 60).first)
      var outcome = FleetOutcome(.failed, kind: "unavailable", reason: "it is suspended")
      outcome.state = .suspended
      try await fleet.end(lease, outcome)
      #expect(try #require(try await fleet.secondsToNext()) > 86_000)
      #expect(try await fleet.status().states.map(\.name) == ["suspended"])
    }
  }

  @Test func `makes what has a new revision due, if it follows changes`() async throws {
    try await withFleet(2, onChange: true) { fleet, _ in
      let dids = try Self.dids(2)
      for lease in try await fleet.take(2, holder: "w", seconds: 60) {
        var outcome = FleetOutcome(.complete)
        outcome.rev = "3lkxag2qhdc2a"
        try await fleet.end(lease, outcome)
      }
      try await fleet.database.ask("UPDATE carpack.account SET tried = now() - interval '1 hour'")
      try await fleet.add(firehose: "ws://127.0.0.1:1")
      let lease = try #require(try await fleet.takeFirehose(holder: "w", seconds: 60))
      var marks = FirehoseMarks()
      _ = marks.take(.revision(dids[0], rev: "3lkxag2qhdc2b", sequence: 4))
      _ = marks.take(.revision(dids[1], rev: "3lkxag2qhdc2a", sequence: 5))
      #expect(try await fleet.note(marks, of: lease, seconds: 60))
      #expect(try await fleet.take(2, holder: "v", seconds: 60).map(\.did) == [dids[0]])
      #expect(try await fleet.takeFirehose(holder: "v", seconds: 60) == nil)
      try await fleet.release(lease, fault: "it is away")
      #expect(try await fleet.status().sources.map(\.reason) == ["it is away"])
      #expect(try await fleet.takeFirehose(holder: "v", seconds: 60)?.cursor == 5)
    }
  }

  @Test func `follows a revision that is claimed and not there once, and not at once`() async throws
  {
    try await withFleet(1, onChange: true) { fleet, _ in
      try await fleet.database.ask("UPDATE carpack.account SET seen_rev = '3zzzzzzzzzzzz'")
      for pause in [300.0, 86_400] {
        try await fleet.database.ask("UPDATE carpack.account SET due = now()")
        let lease = try #require(try await fleet.take(1, holder: "w\(pause)", seconds: 60).first)
        var outcome = FleetOutcome(.complete)
        outcome.rev = "3lkxag2qhdc2a"
        try await fleet.end(lease, outcome)
        let next = try #require(try await fleet.secondsToNext())
        #expect((pause * 0.8...pause * 1.1).contains(next), "\(next)")
      }
    }
  }

  @Test func `adds what a host lists, and notes what has become of it`() async throws {
    try await withFleet(0, onChange: true) { fleet, _ in
      try await fleet.add(host: "https://pds.example.com", every: 3600)
      let lease = try #require(try await fleet.takeHost(holder: "w", seconds: 60))
      #expect(try await fleet.takeHost(holder: "v", seconds: 60) == nil)
      let dids = try Self.dids(3)
      #expect(
        try await fleet.note(
          [
            FleetListed(did: dids[0], rev: "3lkxag2qhdc2a", state: .active),
            FleetListed(did: dids[1], rev: nil, state: .takendown),
            FleetListed(did: dids[1], rev: nil, state: .takendown),
            FleetListed(did: dids[2], rev: "3lkxag2qhdc2a", state: .active),
          ], of: lease, seconds: 60))
      try await fleet.end(lease, count: 3, fault: nil)
      #expect(try await fleet.takeHost(holder: "v", seconds: 60) == nil)
      #expect(try await fleet.status().accounts == 3)
    }
  }

  @Test func `takes up another rate for hosts that have none of their own`() async throws {
    try await withFleet(0) { fleet, _ in
      for host in ["a.example.com", "b.example.com"] {
        _ = try await fleet.takeRequests(1, of: host, rate: 10)
      }
      try await fleet.database.ask("UPDATE carpack.budget SET rate = 3 WHERE host LIKE 'b%'")
      var settings = try await fleet.settings()
      settings.requestsPerSecond = 50
      try await fleet.initialize(settings)
      #expect(try await fleet.takeRequests(1, of: "a.example.com", rate: 1).rate == 50)
      #expect(try await fleet.takeRequests(1, of: "b.example.com", rate: 1).rate == 3)
    }
  }

  @Test func `goes on when the connection was cut`() async throws {
    try await withFleet(1) { fleet, database in
      try await database.cutOff()
      #expect(try await fleet.take(1, holder: "w", seconds: 60).count == 1)
    }
  }

  @Test func `keeps a host's budget over all that ask it`() async throws {
    try await withFleet(0) { _, database in
      let rate = 40.0
      let sent = Sent()
      let begin = ContinuousClock.now
      await withDiscardingTaskGroup { group in
        for _ in 0..<4 {
          let budgets = HostBudgets(FleetDatabase(database.url), requestsPerSecond: rate)
          for _ in 0..<3 {
            group.addTask {
              while begin.duration(to: .now) < .seconds(2) {
                do { try await budgets.admit("pds.example.com") } catch { return }
                sent.count.withLock { $0 += 1 }
              }
            }
          }
        }
      }
      let seconds = begin.duration(to: .now) / .seconds(1)
      let count = Double(sent.count.withLock { $0 })
      // What was granted last may be used after that.
      #expect(count <= rate * seconds + 1 + 4 * 10, "\(count) in \(seconds) s")
      #expect(count > 0)
    }
  }
}
