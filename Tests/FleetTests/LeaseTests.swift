import ATProtocol
import Foundation
import ObjectStore
import Synchronization
import TestSupport
import Testing
import XRPC

@testable import Fleet
@testable import Postgres

@Suite(
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The database of a fleet` {
  private static func dids(_ count: Int) throws -> [DID] {
    try (0..<count).map { try DID("did:web:account-\($0).example.com") }
  }

  private final class Taken: Sendable { let dids = Mutex<[DID]>([]) }
  private final class Sent: Sendable { let count = Mutex(0) }

  /// A fleet with so many accounts, and workers `v` and `w`.
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
      for worker in ["v", "w"] { try await fleet.begin(worker, worker, seconds: 600) }
      try await body(fleet, database)
    }
  }

  /// Claims the only account that is due.
  private func claimed(_ fleet: FleetDatabase, _ holder: String = "w") async throws
    -> FleetDatabase.Lease
  { try #require(try await fleet.claim(1, holder).first) }

  @Test func `is named where there is none`() async throws {
    try await TestDatabase.with { database in
      let error = await #expect(throws: DatabaseError.self) {
        try await FleetDatabase(database.url).settings()
      }
      #expect(error?.kind == .noTables)
    }
  }

  // MARK: Leases

  @Test func `gives an account to one worker at a time`() async throws {
    try await withFleet(50) { fleet, database in
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

  @Test func `lets another worker take what one has held for too long, and believes it alone`()
    async throws
  {
    try await withFleet(1) { fleet, _ in
      let first = try await claimed(fleet, "v")
      #expect(try await fleet.claim(1, "w").isEmpty)
      #expect(try await fleet.claim(1, "v", knowing: [first.did]).isEmpty)
      #expect(
        try await fleet.claim(1, "v").map(\.did) == [first.did], "an answer may have been lost")
      let limit = Database.answerLimit
      #expect(try await fleet.renew("v", .init(), seconds: 60, within: limit))
      try await fleet.database.ask(
        "UPDATE carpack.worker SET alive_until = now() - interval '1 second' WHERE id = 'v'")
      #expect(try await !fleet.renew("v", .init(), seconds: 60, within: limit))
      let second = try await claimed(fleet)
      try await fleet.end(first, FleetOutcome(.failed, reason: "too late"))
      #expect(try await fleet.status().outcomes.map(\.name) == ["never"])
      try await fleet.end(second, FleetOutcome(.complete))
      #expect(try await fleet.status().outcomes.map(\.name) == ["complete"])
      #expect(try await fleet.claim(1, "w").isEmpty)
    }
  }

  @Test func `gives a worker whose lease has run out nothing`() async throws {
    try await withFleet(1) { fleet, _ in
      try await fleet.database.ask("UPDATE carpack.worker SET alive_until = now()")
      #expect(try await fleet.claim(1, "w").isEmpty)
      #expect(try await fleet.claim(1, "unknown").isEmpty)
    }
  }

  @Test func `frees accounts, hosts and firehoses at once when their worker leaves`() async throws {
    try await withFleet(1) { fleet, _ in
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
        try await fleet.leave(worker)
      }
    }
  }

  @Test func `has a failure tried again, with its reason and the time`() async throws {
    try await withFleet(1) { fleet, _ in
      for attempt in 1...3 {
        try await fleet.database.ask("UPDATE carpack.account SET due = now()")
        try await fleet.end(
          try await claimed(fleet), FleetOutcome(.failed, .content, reason: "it's \"odd\""))
        let next = try #require(try await fleet.secondsToNext())
        let expected = 30.0 * pow(2, Double(attempt))
        #expect((expected * 0.4...expected * 1.3).contains(next), "\(attempt): \(next)")
      }
      let status = try await fleet.status()
      #expect(status.failures.map(\.reason) == ["it's \"odd\""])
      #expect(status.failures.first?.nextTry != nil)
      #expect(status.reasons.map(\.name) == ["content"])
    }
  }

  @Test func `asks once a day for an account that its server does not give out`() async throws {
    try await withFleet(1, every: 60) { fleet, _ in
      var outcome = FleetOutcome(.failed, .unavailable, reason: "it is suspended")
      outcome.state = .suspended
      try await fleet.end(try await claimed(fleet), outcome)
      #expect(try #require(try await fleet.secondsToNext()) > 86_000)
      #expect(try await fleet.status().states.map(\.name) == ["suspended"])
    }
  }

  // MARK: Hosts

  /// Gives accounts to hosts, in their order, by the number of the host of each.
  private func place(_ fleet: FleetDatabase, _ hosts: [Int]) async throws {
    for (index, host) in hosts.enumerated() {
      try await fleet.database.ask(
        """
        WITH h AS (INSERT INTO carpack.host (host) VALUES ($2) ON CONFLICT DO NOTHING)
        UPDATE carpack.account SET host = $2,
          due = now() - interval '1 hour' + make_interval(secs => $3::integer) WHERE did = $1
        """, ["did:web:account-\(index).example.com", "https://host-\(host)", "\(index)"])
    }
  }

  @Test
  func `gives a host few places at first, one more after each success, and one after a fault`()
    async throws
  {
    try await withFleet(8) { fleet, _ in
      try await place(fleet, [0, 0, 0, 0, 0, 0, 0, 0])
      var leases = try await fleet.claim(8, "w")
      #expect(leases.count == 2)
      try await fleet.end(leases[0], FleetOutcome(.complete))
      leases = try await fleet.claim(8, "w", knowing: [leases[1].did])
      #expect(leases.count == 2, "one was free, and there is one more")
      var outcome = FleetOutcome(.failed, .server, reason: "no answer")
      outcome.isHostFault = true
      try await fleet.end(leases[0], outcome)
      #expect(try await fleet.claim(8, "w").isEmpty, "it is left alone for a while")
      #expect(try await fleet.status().sources.first?.reason.hasPrefix("no answer") == true)
      let host = try #require(try await fleet.queues().first)
      #expect(host.places == 1 && (1...4).contains(host.waitSeconds), "\(host)")
    }
  }

  @Test func `claims accounts of other hosts past any number of those of a host that has no room`()
    async throws
  {
    try await withFleet(30) { fleet, _ in
      try await place(fleet, [Int](repeating: 0, count: 28) + [1, 2])
      let hosts = try await fleet.claim(8, "w").map(\.host).sorted()
      #expect(hosts == ["https://host-0", "https://host-0", "https://host-1", "https://host-2"])
    }
  }

  @Test func `has all accounts of a host that allows no request wait, and none of others`()
    async throws
  {
    try await withFleet(4) { fleet, _ in
      try await place(fleet, [0, 0, 1, 1])
      let lease = try #require(try await fleet.claim(1, "w").first)
      try await fleet.putOff(lease, for: 3600, "https://host-0")
      #expect(try await Set(fleet.claim(8, "w").map(\.host)) == ["https://host-1"])
      let account = try #require(try await fleet.accounts(FleetSelection(), after: "").last)
      #expect(account.host == "https://host-1" && account.wait == "it is being backed up")
      let waiting = try await fleet.accounts(FleetSelection(), after: "").first
      #expect(waiting?.wait == "its host: it allows no request")
      #expect(try #require(try await fleet.secondsToNext()) > 3500)
    }
  }

  @Test func `moves an account to the queue of its server, and lets go of it if there is no room`()
    async throws
  {
    try await withFleet(5) { fleet, _ in
      let leases = try await fleet.claim(5, "w")
      #expect(leases.count == 5)
      var held = 0
      for lease in leases where try await fleet.locate(lease, at: "https://host-0") { held += 1 }
      #expect(held == 2)
      try await fleet.end(leases[0], FleetOutcome(.complete))
      let more = try await fleet.claim(5, "w", knowing: [leases[1].did])
      #expect(more.map(\.host) == ["https://host-0", "https://host-0"])
    }
  }

  // MARK: Changes

  @Test func `makes what has a new revision due, if it follows changes`() async throws {
    try await withFleet(2, onChange: true) { fleet, _ in
      let dids = try Self.dids(2)
      for lease in try await fleet.claim(2, "w") {
        var outcome = FleetOutcome(.complete)
        (outcome.rev, outcome.isIdentified) = ("3lkxag2qhdc2a", true)
        try await fleet.end(lease, outcome)
      }
      try await fleet.database.ask("UPDATE carpack.account SET tried = now() - interval '1 hour'")
      try await fleet.add(firehose: "ws://127.0.0.1:1")
      let lease = try #require(try await fleet.claimFirehose("w"))
      var marks = FirehoseMarks()
      _ = marks.take(.revision(dids[0], rev: "3lkxag2qhdc2b", sequence: 4))
      _ = marks.take(.revision(dids[1], rev: "3lkxag2qhdc2a", sequence: 5))
      #expect(try await fleet.note(marks, of: lease))
      let due = try await claimed(fleet)
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
    try await withFleet(1) { fleet, _ in
      var outcome = FleetOutcome(.complete)
      outcome.isIdentified = true
      for change in ["identified = now() - interval '8 days'", "identified = now()"] {
        try await fleet.database.ask("UPDATE carpack.account SET due = now()")
        try await fleet.end(try await claimed(fleet), outcome)
        try await fleet.database.ask("UPDATE carpack.account SET due = now(), \(change)")
        let lease = try await claimed(fleet)
        #expect(lease.isIdentified == (change == "identified = now()"))
        try await fleet.end(lease, outcome)
      }
      try await fleet.add(firehose: "ws://127.0.0.1:1")
      let firehose = try #require(try await fleet.claimFirehose("w"))
      var marks = FirehoseMarks()
      _ = marks.take(.change(try Self.dids(1)[0], sequence: 4))
      #expect(try await fleet.note(marks, of: firehose))
      #expect(try await !claimed(fleet).isIdentified)
    }
  }

  @Test func `follows a revision that is claimed and not there once, and not at once`() async throws
  {
    try await withFleet(1, onChange: true) { fleet, _ in
      try await fleet.database.ask("UPDATE carpack.account SET seen_rev = '3zzzzzzzzzzzz'")
      for pause in [300.0, 86_400] {
        try await fleet.database.ask("UPDATE carpack.account SET due = now()")
        var outcome = FleetOutcome(.complete)
        outcome.rev = "3lkxag2qhdc2a"
        try await fleet.end(try await claimed(fleet), outcome)
        let next = try #require(try await fleet.secondsToNext())
        #expect((pause * 0.8...pause * 1.1).contains(next), "\(next)")
      }
    }
  }

  @Test func `adds what a host lists, and believes it of no account where that is`() async throws {
    try await withFleet(0, onChange: true) { fleet, _ in
      let dids = try Self.dids(3)
      for host in ["https://pds.example.com", "https://thief.example.com"] {
        try await fleet.add(host: host, every: 3600)
        #expect(try await fleet.claimHost("w") == host)
        #expect(try await fleet.claimHost("v") == nil)
        #expect(
          try await fleet.note(
            [
              FleetListed(did: dids[0], rev: "3lkxag2qhdc2a", state: .active),
              FleetListed(did: dids[1], rev: nil, state: .takendown),
              FleetListed(did: dids[1], rev: nil, state: .takendown),
              FleetListed(did: dids[2], rev: "3lkxag2qhdc2a", state: .active),
            ], of: host, "w"))
        try await fleet.endListing(of: host, "w", count: 3, fault: nil)
      }
      #expect(try await fleet.claimHost("v") == nil)
      let accounts = try await fleet.accounts(FleetSelection(), after: "")
      #expect(accounts.map(\.host) == [String](repeating: "https://pds.example.com", count: 3))
      #expect(accounts.map(\.state) == ["active", "takendown", "active"])
    }
  }

  // MARK: Deletions

  @Test(arguments: [(30, 20, false), (30, 21, true), (600, 6, false), (600, 7, true)])
  func `raises one alarm when more accounts of a host are gone than go by themselves`(
    count: Int, gone: Int, isAlarm: Bool
  ) async throws {
    try await withFleet(count) { fleet, _ in
      try await fleet.database.ask(
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
    try await withFleet(4) { fleet, _ in
      try await place(fleet, [0, 0, 1, 1])
      var host = FleetSelection()
      host.host = "https://host-0"
      var one = FleetSelection()
      one.dids = [try Self.dids(4)[2]]
      #expect(try await fleet.pause(host, true) == 1)
      #expect(try await fleet.pause(one, true) == 1)
      let claimed = try await fleet.claim(8, "w")
      #expect(claimed.map(\.did) == [try Self.dids(4)[3]])
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
      #expect(try await fleet.claim(8, "w").count == 4)
      #expect(try await fleet.remove(host) == 2)
      #expect(try await fleet.status().accounts == 2)
    }
  }

  // MARK: Tables

  @Test func `takes the tables of version 1 along, and believes none of their deletions`()
    async throws
  {
    try await TestDatabase.with { database in
      let connection = Database(database.url)
      for statement in TablesOfVersion1.statements { try await connection.ask(statement) }
      let fleet = FleetDatabase(database.url)
      let error = await #expect(throws: DatabaseError.self) { try await fleet.settings() }
      #expect(error?.kind == .noTables)
      for _ in 0..<2 {
        try await fleet.initialize(FleetSettings(store: try BucketAddress("s3://archives/fleet/")))
      }
      let accounts = try await fleet.accounts(FleetSelection(), after: "")
      #expect(accounts.map(\.state) == ["active", "missing", "purged", "active"])
      #expect(accounts.map(\.host) == ["https://a.example.com", "https://a.example.com", "", ""])
      #expect(accounts.map(\.outcome) == ["complete", "failed", "failed", nil])
      try await fleet.begin("w", "w", seconds: 60)
      #expect(try await fleet.claim(9, "w").count == 3)
      #expect(try await fleet.claimFirehose("w")?.cursor == 7)
      #expect(try await fleet.claimHost("w") == "https://a.example.com")
      let budget = try await fleet.takeRequests(1, of: "https://slow.example.com", rate: 10)
      #expect(budget.rate == 1)
    }
  }

  @Test func `goes on when the connection was cut`() async throws {
    try await withFleet(1) { fleet, database in
      try await database.cutOff()
      #expect(try await fleet.claim(1, "w").count == 1)
    }
  }

  // MARK: Budgets

  @Test func `takes up another rate for hosts that have none of their own`() async throws {
    try await withFleet(0) { fleet, _ in
      for host in ["https://a", "https://b"] {
        _ = try await fleet.takeRequests(1, of: host, rate: 10)
      }
      try await fleet.database.ask("UPDATE carpack.host SET rate = 3 WHERE host LIKE '%b'")
      #expect(try await fleet.takeRequests(1, of: "https://a", rate: 50).rate == 50)
      #expect(try await fleet.takeRequests(1, of: "https://b", rate: 50).rate == 3)
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
                do { try await budgets.admit("https://pds.example.com") } catch { return }
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

/// The tables as version 1 made them, with some rows.
enum TablesOfVersion1 {
  static let statements = [
    "CREATE SCHEMA carpack",
    "CREATE TABLE carpack.setting (name text PRIMARY KEY, value text NOT NULL)",
    """
    CREATE TABLE carpack.account (
      did text PRIMARY KEY, host text, state text NOT NULL DEFAULT 'active',
      state_since timestamptz NOT NULL DEFAULT now(), every integer NOT NULL,
      on_change boolean NOT NULL, due timestamptz NOT NULL DEFAULT now(), holder text,
      leased_until timestamptz, outcome text, reason text, kind text,
      failures integer NOT NULL DEFAULT 0, rev text COLLATE "C", seen_rev text COLLATE "C",
      bytes bigint, added bigint, tried timestamptz, backed_up timestamptz
    ) WITH (fillfactor = 80)
    """,
    "CREATE INDEX account_due ON carpack.account (due) WITH (fillfactor = 80)",
    """
    CREATE TABLE carpack.host (
      host text PRIMARY KEY, every integer, due timestamptz, holder text, leased_until timestamptz,
      reason text, listed bigint)
    """,
    """
    CREATE TABLE carpack.budget (
      host text PRIMARY KEY, rate double precision NOT NULL, burst double precision NOT NULL,
      tokens double precision NOT NULL, granted double precision NOT NULL DEFAULT 0,
      filled timestamptz NOT NULL DEFAULT clock_timestamp()) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE carpack.firehose (
      url text PRIMARY KEY, cursor bigint, holder text, leased_until timestamptz, reason text,
      event_time timestamptz)
    """,
    """
    CREATE TABLE carpack.worker (
      name text PRIMARY KEY, started timestamptz NOT NULL DEFAULT now(),
      seen timestamptz NOT NULL DEFAULT now(), running integer NOT NULL DEFAULT 0,
      ended bigint NOT NULL DEFAULT 0, failed bigint NOT NULL DEFAULT 0,
      added bigint NOT NULL DEFAULT 0)
    """,
    """
    INSERT INTO carpack.setting VALUES ('version', '1'), ('store', 's3://archives/fleet/'),
      ('every', '86400'), ('on_change', 'false'), ('rate', '10')
    """,
    """
    INSERT INTO carpack.account (did, host, state, every, on_change, outcome, kind, due, holder,
        leased_until) VALUES
      ('did:web:1.example.com', 'https://a.example.com', 'active', 60, false, 'complete', NULL,
        now(), 'w', now() + interval '1 hour'),
      ('did:web:2.example.com', 'https://a.example.com', 'deleted', 60, false, 'failed',
        'BackupError', now(), NULL, NULL),
      ('did:web:3.example.com', NULL, 'removed', 60, false, 'failed', 'BackupError', 'infinity',
        NULL, NULL),
      ('did:web:4.example.com', NULL, 'active', 60, true, NULL, NULL, now(), NULL, NULL)
    """,
    "INSERT INTO carpack.host VALUES ('https://a.example.com', 3600, now())",
    "INSERT INTO carpack.budget VALUES ('a.example.com', 10, 10, 1), ('slow.example.com', 1, 1, 1)",
    "INSERT INTO carpack.firehose VALUES ('wss://relay.example.com', 7, 'w', now())",
  ]
}
