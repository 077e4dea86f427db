import ATProtocol
import Postgres
import Synchronization
import Testing
import XRPC

@testable import Fleet

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The hosts of a fleet` {
  private final class Sent: Sendable { let count = Mutex(0) }

  @Test
  func `gives a host few places at first, one more after each success, and fewer after failures`()
    async throws
  {
    try await TestFleet.with(8) { fleet, _ in
      try await fleet.place([0, 0, 0, 0, 0, 0, 0, 0])
      var leases = try await fleet.claim(8, "w")
      #expect(leases.count == 2)
      try await fleet.end(leases[0], FleetOutcome(.complete))
      leases = try await fleet.claim(8, "w", knowing: [leases[1].did])
      #expect(leases.count == 2, "one was free, and there is one more")
      try await fleet.end(leases[1], FleetOutcome(.failed, .content, reason: "odd"))
      #expect(try await fleet.queues().first?.places == 2, "it may have few that are good")
      var outcome = FleetOutcome(.failed, .server, reason: "no answer")
      outcome.isHostFault = true
      for (failures, pause) in [(0, 2.0), (1, 4), (11, 4096), (20, 4096)] {
        try await fleet.database.persistently(
          "UPDATE carpack.host SET wait_until = NULL, failures = $1::integer", ["\(failures)"])
        let lease = try await fleet.claimed()
        try await fleet.end(lease, outcome)
        #expect(
          try await fleet.number(
            "extract(epoch FROM h.wait_until - tried) FROM carpack.account a JOIN carpack.host h "
              + "ON h.host = a.host WHERE did = '\(lease.did)'") == pause)
      }
      #expect(try await fleet.claim(8, "w").isEmpty, "it is left alone for a while")
      #expect(try await fleet.status().sources.first?.reason.hasPrefix("no answer") == true)
      let host = try #require(try await fleet.queues().first)
      #expect(host.places == 1 && host.waitSeconds > 1000, "\(host)")
    }
  }

  @Test func `claims accounts of other hosts past any number of those of a host that has no room`()
    async throws
  {
    try await TestFleet.with(30) { fleet, _ in
      try await fleet.place([Int](repeating: 0, count: 28) + [1, 2])
      let hosts = try await fleet.claim(8, "w").map(\.host).sorted()
      #expect(hosts == ["https://host-0", "https://host-0", "https://host-1", "https://host-2"])
    }
  }

  @Test func `has all accounts of a host that allows no request wait, and none of others`()
    async throws
  {
    try await TestFleet.with(4) { fleet, _ in
      try await fleet.place([0, 0, 1, 1])
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
    try await TestFleet.with(5) { fleet, _ in
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

  @Test func `adds what a host lists, and believes it of no account where that is`() async throws {
    try await TestFleet.with(0, onChange: true) { fleet, _ in
      let dids = try TestFleet.dids(3)
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

  @Test
  func `asks a host whose list breaks off less and less often, and at once when it is told to`()
    async throws
  {
    try await TestFleet.with(0) { fleet, _ in
      try await fleet.add(host: "https://gone.example.com", every: 3600)
      for (failures, pause) in [(0, 600.0), (1, 1200), (3, 4800), (8, 86_400), (2000, 86_400)] {
        try await fleet.database.persistently(
          "UPDATE carpack.host SET due = now(), list_failures = $1::integer WHERE due IS NOT NULL",
          ["\(failures)"])
        let host = try #require(try await fleet.claimHost("w"))
        try await fleet.endListing(of: host, "w", count: 0, fault: "there is nothing here")
        let next = try await fleet.number(
          "extract(epoch FROM due - now()) FROM carpack.host WHERE due IS NOT NULL")
        #expect((pause * 0.89...pause * 1.11).contains(next), "\(failures): \(next)")
      }
      #expect(try await fleet.claimHost("w") == nil)
      var selection = FleetSelection()
      selection.host = "https://gone.example.com"
      _ = try await fleet.retry(selection)
      let host = try #require(try await fleet.claimHost("w"))
      try await fleet.endListing(of: host, "w", count: 3, fault: nil)
      #expect(
        try await fleet.number("max(list_failures) FROM carpack.host") == 0, "it has answered")
    }
  }

  @Test func `has work for a worker while a list is due or a firehose is unread`() async throws {
    try await TestFleet.with(0) { fleet, _ in
      #expect(try await !fleet.hasUnreadSources("w"))
      try await fleet.add(host: "https://pds.example.com", every: 3600)
      #expect(try await fleet.hasUnreadSources("w"))
      let host = try #require(try await fleet.claimHost("w"))
      #expect(try await fleet.hasUnreadSources("w"), "it is being listed")
      #expect(try await !fleet.hasUnreadSources("v"), "another lists it")
      try await fleet.endListing(of: host, "w", count: 0, fault: nil)
      #expect(try await !fleet.hasUnreadSources("w"))
      try await fleet.add(firehose: "wss://a.example.com")
      try await fleet.add(firehose: "wss://b.example.com")
      for url in ["wss://a.example.com", "wss://b.example.com"] {
        #expect(try await fleet.hasUnreadSources("w"))
        let lease = try #require(try await fleet.claimFirehose("w", isUnread: true))
        #expect(lease.url == url)
        try await fleet.release(lease, fault: nil)
      }
      #expect(try await !fleet.hasUnreadSources("w"))
      #expect(try await fleet.claimFirehose("w", isUnread: true) == nil)
      #expect(try await fleet.claimFirehose("w")?.url == "wss://a.example.com")
      try await fleet.begin("next", "next", seconds: 60)
      #expect(try await fleet.hasUnreadSources("next"), "it began after that was read")
    }
  }

  // MARK: Budgets

  @Test func `takes up another rate for hosts that have none of their own`() async throws {
    try await TestFleet.with(0) { fleet, _ in
      for host in ["https://a", "https://b"] {
        _ = try await fleet.takeRequests(1, of: host, rate: 10)
      }
      try await fleet.database.persistently(
        "INSERT INTO carpack.host (host, rate) VALUES ('https://b', 3)")
      #expect(try await fleet.takeRequests(1, of: "https://a", rate: 50).rate == 50)
      #expect(try await fleet.takeRequests(1, of: "https://b", rate: 50).rate == 3)
    }
  }

  @Test func `keeps no row of a server that has no accounts for long, and none in the queues`()
    async throws
  {
    try await TestFleet.with(2) { fleet, _ in
      try await fleet.place([0, 1])
      for number in 0..<50 {
        let origin = "https://handle-\(number).example.com"
        #expect(try await fleet.takeRequests(2, of: origin, rate: 0.001).granted == 1)
        #expect(try await fleet.takeRequests(1, of: origin, rate: 0.001).granted == 0)
      }
      #expect(try await fleet.number("count(*) FROM carpack.host") == 3)
      #expect(try await fleet.queues().map(\.host) == ["https://host-0", "https://host-1"])
      try await fleet.database.persistently(
        "UPDATE carpack.permit SET filled = now() - interval '2 minutes' WHERE host LIKE '%-1%'")
      try await fleet.forgetPermits(rate: 0.001)
      #expect(try await fleet.number("count(*) FROM carpack.permit") == 50, "none is full again")
      try await fleet.forgetPermits(rate: 10)
      #expect(try await fleet.number("count(*) FROM carpack.permit") == 39)
    }
  }

  @Test func `looks at no host without accounts when it claims`() async throws {
    try await TestFleet.with(3) { fleet, _ in
      try await fleet.place([0, 0, 1])
      // Earlier versions do not say at once what was read.
      guard try await fleet.number("current_setting('server_version_num')") >= 150_000 else {
        return
      }
      // As 0.2.0 has made them.
      try await fleet.database.persistently(
        "INSERT INTO carpack.host (host) SELECT 'https://h-' || n FROM generate_series(1, 20000) n")
      try await fleet.database.persistently("ANALYZE carpack.host")
      let before = try await reads(of: fleet)
      #expect(try await fleet.claim(8, "w").count == 3)
      #expect(try await fleet.secondsToNext() == nil)
      #expect(try await fleet.queues().count == 2)
      #expect(try await reads(of: fleet) - before < 100)
    }
  }

  /// How many rows of hosts were read.
  private func reads(of fleet: FleetDatabase) async throws -> Double {
    try await fleet.database.persistently("SELECT pg_stat_force_next_flush()")
    return try await fleet.number(
      """
      seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'host'
      """)
  }

  @Test func `keeps a host's budget over all that ask it`() async throws {
    try await TestFleet.with(0) { _, database in
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
