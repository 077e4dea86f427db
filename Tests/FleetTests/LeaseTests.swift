import ATProtocol
import Synchronization
import Testing

@testable import Fleet
@testable import Postgres

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The leases of a fleet` {
  private final class Taken: Sendable { let dids = Mutex<[DID]>([]) }

  @Test func `gives an account to one worker at a time`() async throws {
    try await TestFleet.with(50) { fleet, database in
      let taken = Taken()
      let url = database.url
      try await withThrowingDiscardingTaskGroup { group in
        for worker in 0..<5 {
          group.addTask {
            let own = FleetDatabase(url)
            try await own.begin("\(worker)", "w", seconds: 600)
            var known: Set<DID> = []
            while taken.dids.withLock({ $0.count < 50 }) {
              let leases = try await own.claim(3, "\(worker)", knowing: known)
              known.formUnion(leases.map(\.did))
              taken.dids.withLock { $0 += leases.map(\.did) }
            }
          }
        }
      }
      #expect(Set(taken.dids.withLock { $0 }).count == 50)
      #expect(taken.dids.withLock { $0.count } == 50)
      #expect(try await fleet.status().running == 50)
    }
  }

  @Test func `gives no account to a worker that another has claimed while it asked`() async throws {
    try await TestFleet.with(2) { fleet, database in
      let dids = try await fleet.claim(2, "w").map(\.did.text).sorted()
      try await fleet.begin("slow", "w", seconds: 600)
      // One account has a holder, so that workers are read, which takes a while.
      try await fleet.database.persistently(
        """
        UPDATE carpack.account SET holder = CASE WHEN did = $1 THEN 'gone' END
        """, [dids[0]])
      try await fleet.database.persistently("ALTER TABLE carpack.worker RENAME TO real_worker")
      try await fleet.database.persistently(
        """
        CREATE VIEW carpack.worker AS
          SELECT * FROM carpack.real_worker WHERE pg_sleep(0.3) IS NOT NULL
        """)
      async let slow = FleetDatabase(database.url).claim(2, "slow")
      try await Task.sleep(for: .milliseconds(100))
      let other = try await fleet.database.persistently(
        """
        WITH begun AS (
          INSERT INTO carpack.real_worker (id, name, alive_until)
            VALUES ('quick', 'w', now() + interval '1 hour'))
        UPDATE carpack.account SET holder = 'quick' WHERE did = $1 AND holder IS NULL RETURNING did
        """, [dids[1]])
      #expect(try await slow.map(\.did.text) + other.compactMap(\.[0]) == dids)
    }
  }

  @Test func `lets another worker take what one has held for too long, and believes it alone`()
    async throws
  {
    try await TestFleet.with(1) { fleet, _ in
      let first = try await fleet.claimed("v")
      #expect(try await fleet.claim(1, "w").isEmpty)
      #expect(try await fleet.claim(1, "v", knowing: [first.did]).isEmpty)
      #expect(
        try await fleet.claim(1, "v").map(\.did) == [first.did], "an answer may have been lost")
      let limit = Database.answerLimit
      #expect(try await fleet.renew("v", running: 0, seconds: 60, within: limit))
      try await fleet.database.persistently(
        "UPDATE carpack.worker SET alive_until = now() - interval '1 second' WHERE id = 'v'")
      #expect(try await !fleet.renew("v", running: 0, seconds: 60, within: limit))
      let second = try await fleet.claimed()
      try await fleet.end(first, FleetOutcome(.failed, reason: "too late"))
      #expect(try await fleet.status().outcomes.map(\.name) == ["never"])
      try await fleet.end(second, FleetOutcome(.complete))
      #expect(try await fleet.status().outcomes.map(\.name) == ["complete"])
      #expect(try await fleet.claim(1, "w").isEmpty)
    }
  }

  @Test func `gives a worker whose lease has run out nothing`() async throws {
    try await TestFleet.with(1) { fleet, _ in
      try await fleet.database.persistently("UPDATE carpack.worker SET alive_until = now()")
      #expect(try await fleet.claim(1, "w").isEmpty)
      #expect(try await fleet.claim(1, "unknown").isEmpty)
    }
  }

  @Test func `frees accounts, hosts and firehoses at once when their worker leaves`() async throws {
    try await TestFleet.with(1) { fleet, _ in
      try await fleet.add(host: "https://pds.example.com", every: nil)
      try await fleet.add(firehose: "wss://relay.example.com")
      for worker in ["v", "w"] {
        #expect(try await fleet.claim(1, worker).count == 1)
        #expect(try await fleet.claimHost(worker) == "https://pds.example.com")
        #expect(try await fleet.claimFirehose(worker) != nil)
        if worker == "v" {
          #expect(try await fleet.claimHost("w") == nil)
          #expect(try await fleet.claimFirehose("w") == nil)
        }
        try await fleet.leave(worker, within: .seconds(600))
      }
    }
  }

  @Test func `waits for a standby as for a database that is away`() async throws {
    try await TestFleet.with(1) { fleet, database in
      try await database.refuseWrites(true)
      // It can be read.
      _ = try await fleet.settings()
      let error = await #expect(throws: DatabaseError.self) {
        try await fleet.database.ask("DELETE FROM carpack.worker")
      }
      #expect(error?.kind == .connection && error?.description.contains("read-only") == true)
      try await database.refuseWrites(false)
      #expect(try await fleet.claim(1, "w").count == 1)
    }
  }

  @Test func `goes on when the connection was cut`() async throws {
    try await TestFleet.with(1) { fleet, database in
      try await database.cutOff()
      #expect(try await fleet.claim(1, "w").count == 1)
    }
  }
}
