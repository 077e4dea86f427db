import ATProtocol
import Postgres
import Testing

@testable import Fleet

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The status of a fleet` {
  @Test func `tells at once what workers hold and have done, and counts no failure as a backup`()
    async throws
  {
    try await TestFleet.with(5) { fleet, _ in
      let leases = try await fleet.claim(4, "w")
      var outcome = FleetOutcome(.complete)
      outcome.added = 100
      try await fleet.end(leases[0], outcome)
      try await fleet.end(leases[1], FleetOutcome(.incomplete, .blobs))
      try await fleet.end(leases[2], FleetOutcome(.failed, .content, reason: "odd"))
      // One that comes too late counts for no worker.
      try await fleet.end(leases[2], outcome)
      let status = try await fleet.status()
      #expect(status.workers.map(\.name) == ["v", "w"])
      #expect(status.workers.map(\.running) == [0, 1])
      #expect(status.workers.map(\.ended) == [0, 3] && status.workers.map(\.failed) == [0, 1])
      #expect(status.workers.allSatisfy { $0.silentSeconds == nil } && status.lostWorkers.isEmpty)
      #expect(status.running == 1)
      #expect(status.hourly == 2 && status.hourlyFailed == 1 && status.hourlyBytes == 100)
    }
  }

  @Test func `names workers that were killed, and not those that have ended or gone on`()
    async throws
  {
    try await TestFleet.with(1) { fleet, _ in
      func set(_ values: String) async throws {
        try await fleet.database.persistently("UPDATE carpack.worker SET \(values) WHERE id = 'v'")
      }
      _ = try await fleet.claim(1, "v")
      try await set("seen = now() - interval '40 seconds'")
      let silent = try #require(try await fleet.status().workers.first)
      #expect(silent.name == "v" && silent.running == 1)
      #expect((40...100).contains(try #require(silent.silentSeconds)))
      try await set("alive_until = now() - interval '1 minute'")
      var status = try await fleet.status()
      #expect(status.workers.map(\.name) == ["w"] && status.lostWorkers.map(\.name) == ["v"])
      #expect(status.running == 0, "it is free")
      // The same process, with another lease.
      try await fleet.begin("another", "v", seconds: 60)
      status = try await fleet.status()
      #expect(status.workers.map(\.name) == ["v", "w"] && status.lostWorkers.isEmpty)
      for id in ["another", "w"] { try await fleet.leave(id, within: .seconds(600)) }
      #expect(try await fleet.status().workers.isEmpty)
    }
  }

  @Test func `has the last results of each account, ten of either kind`() async throws {
    try await TestFleet.with(2) { fleet, _ in
      let dids = try TestFleet.dids(2)
      func end(_ outcome: FleetOutcome) async throws {
        try await fleet.database.persistently(
          "UPDATE carpack.account SET due = now() WHERE did = $1", [dids[0].text])
        try await fleet.end(try await fleet.claimed(), outcome)
      }
      var other = FleetSelection()
      other.dids = [dids[1]]
      #expect(try await fleet.pause(other, true) == 1)
      #expect(try await fleet.history(of: dids[0]) == [])
      for number in 0..<12 {
        var outcome = FleetOutcome(.failed, .content, reason: "failure \(number)")
        outcome.state = number == 11 ? .suspended : .active
        try await end(outcome)
      }
      for number in 0..<12 {
        var outcome = FleetOutcome(.complete)
        outcome.added = UInt64(number)
        try await end(outcome)
      }
      let history = try #require(try await fleet.history(of: dids[0]))
      #expect(history.map(\.outcome) == (0..<20).map { $0 < 10 ? "complete" : "failed" })
      #expect(history.prefix(10).map(\.added) == (2..<12).reversed().map { UInt64($0) })
      #expect(history.suffix(10).map(\.reason) == (2..<12).reversed().map { "failure \($0)" })
      #expect(history.allSatisfy { $0.worker == "w" } && history[10].state == "suspended")
      #expect(history[10].cause == "content" && history[0].cause == nil)
      try await fleet.markAbsent(dids[0].text, "it is not in the store")
      let first = try #require(try await fleet.history(of: dids[0])?.first)
      #expect(first.reason == "it is not in the store" && first.worker == nil)
      #expect(first.cause == "absent" && first.outcome == "failed")
      #expect(try await fleet.history(of: dids[1]) == [])
      #expect(try await fleet.remove(FleetSelection()) == 2)
      #expect(try await fleet.history(of: dids[0]) == nil)
      #expect(try await fleet.number("count(*) FROM carpack.attempt") == 0)
    }
  }
}
