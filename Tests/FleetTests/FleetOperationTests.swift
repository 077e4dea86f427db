import ATProtocol
import Postgres
import Testing

@testable import Fleet

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `What a fleet removes, and an operator does` {
  @Test(arguments: [(30, 20, false), (30, 21, true), (600, 6, false), (600, 7, true)])
  func `raises one alarm when more accounts of a host are gone than go by themselves`(
    count: Int, gone: Int, isAlarm: Bool
  ) async throws {
    try await TestFleet.with(count) { fleet, _ in
      try await fleet.database.persistently(
        """
        WITH h AS (INSERT INTO carpack.host (host, places) VALUES ('https://host', 1000))
        UPDATE carpack.account SET host = 'https://host', bytes = 1
        """)
      var outcome = FleetOutcome(.failed, .unavailable, reason: "there is no such account")
      outcome.state = .missing
      var alarms: [Int] = []
      let leases = try await fleet.claim(gone, "w")
      #expect(leases.count == gone)
      for lease in leases {
        try await fleet.end(lease, outcome)
        let losses = try await fleet.losses(about: lease.did)
        if case .alarm(let reason) = DeletionRule.decide(nil, losses),
          try await fleet.raiseAlarm(losses.host, reason)
        {
          #expect(losses.host == "https://host" && losses.accounts == count)
          alarms.append(losses.goneInADay)
        }
      }
      #expect(alarms == (isAlarm ? [gone] : []))
      #expect(try await fleet.losses(about: leases[0].did).isAlarmed == isAlarm)
      #expect(try await fleet.status().alarms.count == (isAlarm ? 1 : 0))
      var host = FleetSelection()
      host.host = "https://host"
      #expect(try await fleet.pause(host, false) == 1)
      // It was seen.
      let losses = try await fleet.losses(about: leases[0].did)
      #expect(!losses.isAlarmed && losses.goneInADay == (isAlarm ? 0 : gone))
    }
  }

  @Test func `counts what only a host has said to be deleted, and not what an operator has seen`()
    async throws
  {
    try await TestFleet.with(9) { fleet, _ in
      try await fleet.place([Int](repeating: 0, count: 9))
      let dids = try TestFleet.dids(9)
      func set(_ place: Int, _ values: String) async throws {
        try await fleet.database.persistently(
          "UPDATE carpack.account SET bytes = 1, gone_since = now(), \(values) WHERE did = $1",
          [dids[place].text])
      }
      func onItsWord() async throws -> Int { try await fleet.losses(about: dids[0]).onItsWord }
      try await set(0, "state = 'deleted', evidence = 'server'")
      try await set(1, "state = 'missing'")
      try await set(2, "state = 'deleted', evidence = 'tombstone'")
      try await set(3, "state = 'removed', evidence = 'server', witness = 'https://relay'")
      try await set(4, "state = 'removed', paused = true")
      try await set(5, "state = 'purged', state_since = now() - interval '31 days'")
      #expect(try await onItsWord() == 0)
      try await set(6, "state = 'removed', evidence = 'server'")
      // Workers of 0.2.0 forget the evidence of what they delete.
      try await set(7, "state = 'purged'")
      #expect(try await onItsWord() == 2)
      #expect(try await fleet.losses(about: dids[0]).accounts == 7)
      #expect(try await !fleet.losses(about: dids[0]).isApproved)
      var host = FleetSelection()
      host.host = "https://host-0"
      #expect(try await fleet.raiseAlarm("https://host-0", "two are gone"))
      #expect(try await !fleet.raiseAlarm("https://host-0", "three are gone"))
      #expect(
        try await fleet.status().alarms.first?.reason.hasPrefix("two are gone, since 2") == true)
      _ = try await fleet.pause(host, false)
      #expect(try await onItsWord() == 0)
      #expect(try await fleet.losses(about: dids[0]).isApproved)
    }
  }

  // MARK: Operators

  @Test func `does to accounts and hosts what an operator says`() async throws {
    try await TestFleet.with(4) { fleet, _ in
      try await fleet.place([0, 0, 1, 1])
      var host = FleetSelection()
      host.host = "https://host-0"
      var one = FleetSelection()
      one.dids = [try TestFleet.dids(4)[2]]
      #expect(try await fleet.pause(host, true) == 1)
      #expect(try await fleet.pause(one, true) == 1)
      let claimed = try await fleet.claim(8, "w")
      #expect(claimed.map(\.did) == [try TestFleet.dids(4)[3]])
      let waits = try await fleet.accounts(FleetSelection(), after: "").map(\.wait)
      #expect(
        waits == [
          "its host is paused", "its host is paused", "it is paused", "it is being backed up",
        ])
      try await fleet.end(claimed[0], FleetOutcome(.failed, .content, reason: "odd"))
      var failed = FleetSelection()
      failed.isFailed = true
      #expect(try await fleet.accounts(failed, after: "").map(\.reason) == ["odd"])
      #expect(try await fleet.retry(failed) == 1)
      #expect(try await fleet.pause(host, false) == 1)
      #expect(try await fleet.pause(one, false) == 1)
      #expect(try await fleet.claim(8, "w").count == 3, "a host has a place less after a failure")
      #expect(try await fleet.remove(host) == 2)
      #expect(try await fleet.status().accounts == 2)
    }
  }
}
