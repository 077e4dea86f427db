/// The tables of a fleet, in a schema of their own.
///
/// Revisions are compared as texts, byte by byte, which is their order.
enum FleetTables {
  /// What this program can work with.
  static let version = "1"

  /// The statement that makes them.
  ///
  /// It takes a lock: two that make what is not there come into each other's way, and the second may
  /// be what an interrupted command had sent.
  static let creation = """
    DO $tables$ BEGIN
    PERFORM pg_advisory_xact_lock(\(lock));
    \(text)
    END $tables$
    """

  /// The number of the lock, which means nothing to other programs: "carpack".
  private static let lock = 0x63_6172_7061_636b

  private static let text = """
    CREATE SCHEMA IF NOT EXISTS carpack;

    CREATE TABLE IF NOT EXISTS carpack.setting (
      name text PRIMARY KEY,
      value text NOT NULL
    );

    CREATE TABLE IF NOT EXISTS carpack.account (
      did text PRIMARY KEY,
      host text,                        -- the server it is on, as far as known
      state text NOT NULL DEFAULT 'active',
      state_since timestamptz NOT NULL DEFAULT now(),
      every integer NOT NULL,           -- seconds from one backup to the next
      on_change boolean NOT NULL,       -- whether a new revision makes it due
      due timestamptz NOT NULL DEFAULT now(),
      holder text,                      -- whose lease it is
      leased_until timestamptz,
      outcome text,                     -- complete, incomplete, failed; NULL before the first
      reason text,                      -- why it is not complete
      kind text,                        -- the same in a word, to count by
      failures integer NOT NULL DEFAULT 0,
      rev text COLLATE "C",             -- the revision that is backed up
      seen_rev text COLLATE "C",        -- the newest that a server has shown
      bytes bigint,                     -- of the archive
      added bigint,                     -- by the newest backup
      tried timestamptz,
      backed_up timestamptz             -- when all that there was came
    ) WITH (fillfactor = 80);
    CREATE INDEX IF NOT EXISTS account_due ON carpack.account (due) WITH (fillfactor = 80);

    CREATE TABLE IF NOT EXISTS carpack.host (
      host text PRIMARY KEY,
      every integer,                    -- seconds from one listing of its accounts to the next
      due timestamptz,
      holder text,
      leased_until timestamptz,
      reason text,
      listed bigint
    );

    CREATE TABLE IF NOT EXISTS carpack.budget (
      host text PRIMARY KEY,
      rate double precision NOT NULL,   -- requests a second, of all workers together
      burst double precision NOT NULL,
      tokens double precision NOT NULL,
      granted double precision NOT NULL DEFAULT 0,
      filled timestamptz NOT NULL DEFAULT clock_timestamp()
    ) WITH (fillfactor = 50);

    CREATE TABLE IF NOT EXISTS carpack.firehose (
      url text PRIMARY KEY,
      cursor bigint,
      holder text,
      leased_until timestamptz,
      reason text,                      -- why it broke off last; NULL while it is followed
      event_time timestamptz
    );

    CREATE TABLE IF NOT EXISTS carpack.worker (
      name text PRIMARY KEY,
      started timestamptz NOT NULL DEFAULT now(),
      seen timestamptz NOT NULL DEFAULT now(),
      running integer NOT NULL DEFAULT 0,
      ended bigint NOT NULL DEFAULT 0,
      failed bigint NOT NULL DEFAULT 0,
      added bigint NOT NULL DEFAULT 0
    );
    """
}
