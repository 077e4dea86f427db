import ATProtocol
import Foundation
import Postgres
import Testing
import XRPC

@testable import Fleet

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The time at which an account is due` {
  @Test func `has a failure tried again, with its reason and the time`() async throws {
    try await TestFleet.with(1) { fleet, _ in
      for attempt in 1...3 {
        try await fleet.database.persistently("UPDATE carpack.account SET due = now()")
        try await fleet.end(
          try await fleet.claimed(), FleetOutcome(.failed, .content, reason: "it's \"odd\""))
        let next = try await fleet.number("extract(epoch FROM due - tried) FROM carpack.account")
        let expected = 30.0 * pow(2, Double(attempt))
        #expect((expected * 0.79...expected * 1.21).contains(next), "\(attempt): \(next)")
      }
      let status = try await fleet.status()
      #expect(status.failures.map(\.reason) == ["it's \"odd\""])
      #expect(status.failures.first?.nextTry != nil)
      #expect(status.reasons.map(\.name) == ["content"])
    }
  }

  @Test func `asks once a day for an account that its server does not give out`() async throws {
    try await TestFleet.with(1, every: 60) { fleet, _ in
      var outcome = FleetOutcome(.failed, .unavailable, reason: "it is suspended")
      outcome.state = .suspended
      try await fleet.end(try await fleet.claimed(), outcome)
      #expect(try #require(try await fleet.secondsToNext()) > 86_000)
      #expect(try await fleet.status().states.map(\.name) == ["suspended"])
    }
  }

  @Test func `makes what has a new revision due, if it follows changes`() async throws {
    try await TestFleet.with(2, onChange: true) { fleet, _ in
      let dids = try TestFleet.dids(2)
      for lease in try await fleet.claim(2, "w") {
        var outcome = FleetOutcome(.complete)
        (outcome.rev, outcome.isIdentified) = ("3lkxag2qhdc2a", true)
        try await fleet.end(lease, outcome)
      }
      try await fleet.database.persistently(
        "UPDATE carpack.account SET tried = now() - interval '1 hour'")
      try await fleet.add(firehose: "ws://127.0.0.1:1")
      let lease = try #require(try await fleet.claimFirehose("w"))
      var marks = FirehoseMarks()
      _ = marks.take(.revision(dids[0], rev: "3lkxag2qhdc2b", sequence: 4))
      _ = marks.take(.revision(dids[1], rev: "3lkxag2qhdc2a", sequence: 5))
      #expect(try await fleet.note(marks, of: lease))
      let due = try await fleet.claimed()
      #expect(due.did == dids[0] && due.isIdentified && due.rev == "3lkxag2qhdc2a")
      #expect(try await fleet.claim(2, "v").isEmpty)
      #expect(try await fleet.claimFirehose("v") == nil)
      try await fleet.release(lease, fault: "it is away")
      #expect(try await fleet.status().sources.map(\.reason) == ["it is away"])
      #expect(try await fleet.claimFirehose("v")?.cursor == 5)
    }
  }

  @Test func `looks an account up again when its identity has changed, or after a week`()
    async throws
  {
    try await TestFleet.with(1) { fleet, _ in
      var outcome = FleetOutcome(.complete)
      outcome.isIdentified = true
      for change in ["identified = now() - interval '8 days'", "identified = now()"] {
        try await fleet.database.persistently("UPDATE carpack.account SET due = now()")
        try await fleet.end(try await fleet.claimed(), outcome)
        try await fleet.database.persistently("UPDATE carpack.account SET due = now(), \(change)")
        let lease = try await fleet.claimed()
        #expect(lease.isIdentified == (change == "identified = now()"))
        try await fleet.end(lease, outcome)
      }
      try await fleet.add(firehose: "ws://127.0.0.1:1")
      let firehose = try #require(try await fleet.claimFirehose("w"))
      var marks = FirehoseMarks()
      _ = marks.take(.change(try TestFleet.dids(1)[0], sequence: 4))
      #expect(try await fleet.note(marks, of: firehose))
      #expect(try await !fleet.claimed().isIdentified)
    }
  }

  @Test func `follows a revision that is claimed and not there once, and not at once`() async throws
  {
    try await TestFleet.with(1, onChange: true) { fleet, _ in
      try await fleet.database.persistently("UPDATE carpack.account SET seen_rev = '3zzzzzzzzzzzz'")
      for pause in [300.0, 86_400] {
        try await fleet.database.persistently("UPDATE carpack.account SET due = now()")
        var outcome = FleetOutcome(.complete)
        outcome.rev = "3lkxag2qhdc2a"
        try await fleet.end(try await fleet.claimed(), outcome)
        let next = try await fleet.number("extract(epoch FROM due - tried) FROM carpack.account")
        #expect((pause * 0.94...pause * 1.06).contains(next), "\(next)")
      }
    }
  }
}
