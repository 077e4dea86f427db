import ATProtocol
import ObjectStore
import Postgres
import Testing
import XRPC

@testable import Fleet

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `The tables of a fleet` {
  @Test func `is named where there is none`() async throws {
    try await TestDatabase.with { database in
      let error = await #expect(throws: DatabaseError.self) {
        try await FleetDatabase(database.url).settings()
      }
      #expect(error?.kind == .noTables)
    }
  }

  @Test func `takes the tables of version 1 along, and believes none of their deletions`()
    async throws
  {
    try await TestDatabase.with { database in
      let connection = Database(database.url)
      for statement in TablesOfVersion1.statements { try await connection.persistently(statement) }
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
