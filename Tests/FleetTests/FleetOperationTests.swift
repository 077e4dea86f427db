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
        UPDATE carpack.account SET host = 'https://host'
        """)
      var outcome = FleetOutcome(.failed, .unavailable, reason: "there is no such account")
      outcome.state = .missing
      var alarms: [Int] = []
      let leases = try await fleet.claim(gone, "w")
      #expect(leases.count == gone)
      for lease in leases {
        try await fleet.end(lease, outcome)
        if let (host, count) = try await fleet.raiseAlarm(about: lease.did) {
          #expect(host == "https://host")
          alarms.append(count)
        }
      }
      #expect(alarms == (isAlarm ? [gone] : []))
      #expect(try await fleet.mayRemove(leases[0].did) == !isAlarm)
      #expect(try await fleet.status().alarms.count == (isAlarm ? 1 : 0))
      var host = FleetSelection()
      host.host = "https://host"
      #expect(try await fleet.pause(host, false) == 1)
      #expect(try await fleet.mayRemove(leases[0].did))
      #expect(try await fleet.raiseAlarm(about: leases[0].did) == nil, "it was seen")
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
