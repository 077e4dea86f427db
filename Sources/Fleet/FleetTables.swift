/// The tables of a fleet, in a schema of their own.
///
/// 1. A row that is worked on names its worker (`holder`). It is held while that worker's row in
///    `worker` is alive, and free otherwise: this is the only lease there is.
/// 2. Revisions are compared as texts, byte by byte, which is their order.
/// 3. Workers of 0.2.0 may be at work while the tables are brought up to date, and afterwards:
///    within a version the tables grow by tables, and by columns with a default.
enum FleetTables {
  /// The version of the tables that this program uses.
  static let version = "3"

  /// The statement that makes the tables, or brings those of an older version up to date.
  ///
  /// The lock keeps two that do so out of each other's way; the second may be what an interrupted
  /// command had sent.
  static let creation = """
    DO $tables$ BEGIN
    PERFORM pg_advisory_xact_lock(\(lock));
    CREATE SCHEMA IF NOT EXISTS carpack;
    IF to_regtype('carpack.account_state') IS NULL THEN
      CREATE TYPE carpack.account_state AS ENUM (\(words(FleetOutcome.State.self)));
      CREATE TYPE carpack.outcome AS ENUM (\(words(FleetOutcome.Verdict.self)));
      CREATE TYPE carpack.cause AS ENUM (\(words(FleetOutcome.Cause.self)));
      CREATE TYPE carpack.evidence AS ENUM (\(words(DeletionEvidence.self)));
    END IF;
    IF to_regclass('carpack.budget') IS NOT NULL THEN \(migration) END IF;
    \(tables)
    END $tables$
    """

  private static func words<Word: CaseIterable & RawRepresentable<String>>(_ type: Word.Type)
    -> String
  {
    type.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
  }

  /// The number of the lock, which means nothing to other programs: "carpack".
  private static let lock = 0x63_6172_7061_636b

  private static let tables = """
    CREATE TABLE IF NOT EXISTS carpack.setting (name text PRIMARY KEY, value text NOT NULL);

    CREATE TABLE IF NOT EXISTS carpack.worker (
      id text PRIMARY KEY,
      name text NOT NULL,
      started timestamptz NOT NULL DEFAULT now(),
      alive_until timestamptz NOT NULL,
      running integer NOT NULL DEFAULT 0,
      ended bigint NOT NULL DEFAULT 0,
      failed bigint NOT NULL DEFAULT 0
    );

    ALTER TABLE carpack.worker ADD COLUMN IF NOT EXISTS seen timestamptz; -- its last sign of life

    CREATE TABLE IF NOT EXISTS carpack.account (
      did text PRIMARY KEY,
      host text NOT NULL DEFAULT '',    -- the origin of its server; '' before it is looked up
      state carpack.account_state NOT NULL DEFAULT 'active',
      state_since timestamptz NOT NULL DEFAULT now(),
      gone_since timestamptz,           -- since when its server has not known it
      evidence carpack.evidence,        -- what proves that it was deleted
      every integer NOT NULL,           -- seconds from one backup to the next
      on_change boolean NOT NULL,       -- whether a new revision makes it due
      due timestamptz NOT NULL DEFAULT now(),
      paused boolean NOT NULL DEFAULT false,
      holder text,                      -- the worker that works on it
      outcome carpack.outcome,          -- of the last backup; NULL before the first
      cause carpack.cause,              -- why it is not complete, to count by
      reason text,                      -- the same in full
      failures integer NOT NULL DEFAULT 0,
      rev text COLLATE "C",             -- the revision that is backed up, and its commit
      head text,
      seen_rev text COLLATE "C",        -- the newest that a server has shown
      identified timestamptz,           -- when its identity was looked up; NULL if it has changed
      bytes bigint,                     -- of the archive
      added bigint,                     -- by the newest backup
      tried timestamptz,
      backed_up timestamptz,            -- when the last complete backup ended
      trash text,                       -- the key of the archive that was put aside
      recipients text                   -- age recipients of its owner, a blank between them
    ) WITH (fillfactor = 80);
    -- Version 2 had no recipients, and 0.2.0 none of the others.
    ALTER TABLE carpack.account ADD COLUMN IF NOT EXISTS recipients text,
      -- How many results of either kind there were.
      ADD COLUMN IF NOT EXISTS completes integer NOT NULL DEFAULT 0,
      ADD COLUMN IF NOT EXISTS others integer NOT NULL DEFAULT 0,
      ADD COLUMN IF NOT EXISTS witness text; -- who agrees that it was deleted
    CREATE INDEX IF NOT EXISTS account_queue ON carpack.account (host, due)
      WITH (fillfactor = 80) WHERE NOT paused;
    CREATE INDEX IF NOT EXISTS account_held ON carpack.account (host) WHERE holder IS NOT NULL;
    CREATE INDEX IF NOT EXISTS account_gone ON carpack.account (host, gone_since)
      WHERE gone_since IS NOT NULL;

    -- The last results of each account: a row is written again when ten of its kind are newer.
    CREATE TABLE IF NOT EXISTS carpack.attempt (
      did text NOT NULL,
      slot integer NOT NULL,
      ended timestamptz NOT NULL,
      outcome carpack.outcome NOT NULL,
      state carpack.account_state NOT NULL,
      cause carpack.cause,
      reason text,
      added bigint,
      worker text,                      -- its name
      PRIMARY KEY (did, slot)
    ) WITH (fillfactor = 80);

    CREATE TABLE IF NOT EXISTS carpack.host (
      host text PRIMARY KEY,            -- an origin; '' has the accounts that were not looked up
      places integer NOT NULL DEFAULT 2, -- how many of its accounts are backed up at a time
      failures integer NOT NULL DEFAULT 0, -- of the host, in a row
      wait_until timestamptz,           -- when it may be asked again
      wait_reason text,
      paused boolean NOT NULL DEFAULT false,
      alarm_since timestamptz,          -- since when too many accounts are gone; nothing is removed
      alarm_cleared timestamptz,
      rate double precision,            -- requests a second of all workers; NULL for the setting
      tokens double precision NOT NULL DEFAULT 1,
      granted double precision NOT NULL DEFAULT 0,
      filled timestamptz NOT NULL DEFAULT clock_timestamp(),
      every integer,                    -- seconds from one listing of its accounts to the next
      due timestamptz,                  -- of the next listing; NULL for none
      holder text,
      reason text,                      -- why the last listing broke off
      listed bigint
    ) WITH (fillfactor = 50);
    ALTER TABLE carpack.host ADD COLUMN IF NOT EXISTS alarm_reason text,
      ADD COLUMN IF NOT EXISTS list_failures integer NOT NULL DEFAULT 0; -- in a row
    CREATE INDEX IF NOT EXISTS host_listing ON carpack.host (due) WHERE due IS NOT NULL;
    INSERT INTO carpack.host (host, places) VALUES ('', 1000000) ON CONFLICT DO NOTHING;

    -- 0.2.0 made a row for every server that it asked, even a handle's own website. None is being
    -- made at this moment: the table was altered just before, and is locked.
    DELETE FROM carpack.host h WHERE h.host <> '' AND h.due IS NULL AND h.rate IS NULL
      AND NOT h.paused AND h.alarm_since IS NULL
      AND NOT EXISTS (SELECT FROM carpack.account a WHERE a.host = h.host);

    -- Requests to servers that have no row in host: directories, and handles' own websites.
    CREATE TABLE IF NOT EXISTS carpack.permit (
      host text PRIMARY KEY,            -- an origin
      tokens double precision NOT NULL DEFAULT 0,
      granted double precision NOT NULL DEFAULT 1,
      filled timestamptz NOT NULL DEFAULT clock_timestamp()
    ) WITH (fillfactor = 50);

    CREATE TABLE IF NOT EXISTS carpack.firehose (
      url text PRIMARY KEY,
      cursor bigint,
      holder text,
      reason text,                      -- why it broke off last; NULL while it is followed
      event_time timestamptz
    );

    -- When it was last read up to the present, or broke off.
    ALTER TABLE carpack.firehose ADD COLUMN IF NOT EXISTS read_until timestamptz;

    -- Puts a held account into the queue of its server, and says whether it is still held: it is let
    -- go of if the server has no room. A function sees what was committed while it waited.
    CREATE OR REPLACE FUNCTION carpack.locate(account_did text, server text, worker_id text)
      RETURNS boolean LANGUAGE plpgsql AS $locate$
    DECLARE has_room boolean;
    BEGIN
      INSERT INTO carpack.host (host) VALUES (server) ON CONFLICT DO NOTHING;
      PERFORM FROM carpack.host WHERE host = server FOR UPDATE;
      SELECT NOT paused AND coalesce(wait_until, '-infinity') <= clock_timestamp()
          AND places > (SELECT count(*) FROM carpack.account a JOIN carpack.worker w
            ON w.id = a.holder AND w.alive_until > clock_timestamp() WHERE a.host = server)
        INTO has_room FROM carpack.host WHERE host = server;
      UPDATE carpack.account SET host = server, holder = CASE WHEN has_room THEN holder END
        WHERE did = account_did AND holder = worker_id;
      RETURN FOUND AND has_room;
    END $locate$;
    """

  /// The statements that bring tables of version 1 up to date.
  ///
  /// Version 1 called an account deleted because its server did not know it, which proves nothing.
  private static let migration = """
    DROP INDEX IF EXISTS carpack.account_due;
    UPDATE carpack.account SET host = '' WHERE host IS NULL;
    ALTER TABLE carpack.account
      ALTER state DROP DEFAULT,
      ALTER state TYPE carpack.account_state USING (CASE state WHEN 'deleted' THEN 'missing'
        WHEN 'removed' THEN 'purged' ELSE state END)::carpack.account_state,
      ALTER state SET DEFAULT 'active',
      ALTER outcome TYPE carpack.outcome USING outcome::carpack.outcome,
      ALTER host SET DEFAULT '', ALTER host SET NOT NULL,
      DROP leased_until, DROP kind,
      ADD gone_since timestamptz, ADD evidence carpack.evidence,
      ADD paused boolean NOT NULL DEFAULT false, ADD cause carpack.cause, ADD head text,
      ADD identified timestamptz, ADD trash text;
    UPDATE carpack.account SET holder = NULL WHERE holder IS NOT NULL;
    ALTER TABLE carpack.host
      DROP leased_until,
      ADD places integer NOT NULL DEFAULT 2, ADD failures integer NOT NULL DEFAULT 0,
      ADD wait_until timestamptz, ADD wait_reason text,
      ADD paused boolean NOT NULL DEFAULT false, ADD alarm_since timestamptz,
      ADD alarm_cleared timestamptz, ADD rate double precision,
      ADD tokens double precision NOT NULL DEFAULT 1,
      ADD granted double precision NOT NULL DEFAULT 0,
      ADD filled timestamptz NOT NULL DEFAULT clock_timestamp();
    INSERT INTO carpack.host (host, rate) SELECT 'https://' || host, rate FROM carpack.budget
      WHERE rate <> (SELECT value::double precision FROM carpack.setting WHERE name = 'rate')
      ON CONFLICT (host) DO UPDATE SET rate = excluded.rate;
    INSERT INTO carpack.host (host) SELECT DISTINCT host FROM carpack.account WHERE host <> ''
      ON CONFLICT DO NOTHING;
    UPDATE carpack.host SET holder = NULL;
    ALTER TABLE carpack.firehose DROP leased_until;
    UPDATE carpack.firehose SET holder = NULL, cursor = CASE WHEN cursor >= 0 THEN cursor END;
    DROP TABLE carpack.budget, carpack.worker;
    """
}
