-- Each statement that carpack 0.2.0 sends to the database of a fleet, as PostgreSQL recorded them.
-- Written once: workers of later versions have to get on with them.

-- name: creation
DO $tables$ BEGIN
PERFORM pg_advisory_xact_lock(27973166833951595);
CREATE SCHEMA IF NOT EXISTS carpack;
IF to_regtype('carpack.account_state') IS NULL THEN
  CREATE TYPE carpack.account_state AS ENUM ('active', 'deactivated', 'suspended', 'takendown', 'missing', 'deleted', 'removed', 'purged');
  CREATE TYPE carpack.outcome AS ENUM ('complete', 'incomplete', 'failed');
  CREATE TYPE carpack.cause AS ENUM ('blobs', 'list', 'unreadable', 'doubt', 'unavailable', 'identity', 'server', 'content', 'archive', 'store', 'absent', 'other');
  CREATE TYPE carpack.evidence AS ENUM ('tombstone', 'server');
END IF;
IF to_regclass('carpack.budget') IS NOT NULL THEN DROP INDEX IF EXISTS carpack.account_due;
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
DROP TABLE carpack.budget, carpack.worker; END IF;
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
-- Version 2 had no recipients.
ALTER TABLE carpack.account ADD COLUMN IF NOT EXISTS recipients text;
CREATE INDEX IF NOT EXISTS account_queue ON carpack.account (host, due)
  WITH (fillfactor = 80) WHERE NOT paused;
CREATE INDEX IF NOT EXISTS account_held ON carpack.account (host) WHERE holder IS NOT NULL;
CREATE INDEX IF NOT EXISTS account_gone ON carpack.account (host, gone_since)
  WHERE gone_since IS NOT NULL;

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
INSERT INTO carpack.host (host, places) VALUES ('', 1000000) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS carpack.firehose (
  url text PRIMARY KEY,
  cursor bigint,
  holder text,
  reason text,                      -- why it broke off last; NULL while it is followed
  event_time timestamptz
);

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
END $tables$

-- name: settings.write
WITH new AS (SELECT unnest($1::text[]) AS name, unnest($2::text[]) AS value),
  gone AS (DELETE FROM carpack.setting WHERE name NOT IN (SELECT name FROM new))
INSERT INTO carpack.setting SELECT name, value FROM new
  ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: settings
SELECT name, value FROM carpack.setting

-- name: begin
WITH gone AS (DELETE FROM carpack.worker WHERE alive_until < now() - interval '1 hour')
INSERT INTO carpack.worker (id, name, alive_until)
  VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3::integer))
  ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until

-- name: renew
UPDATE carpack.worker SET alive_until = clock_timestamp() + make_interval(secs => $2::integer),
  running = $3::integer, ended = $4::bigint, failed = $5::bigint
  WHERE id = $1 AND alive_until > clock_timestamp() RETURNING 1

-- name: leave
DELETE FROM carpack.worker WHERE id = $1

-- name: add
INSERT INTO carpack.account (did, every, on_change, due)
  SELECT unnest($1::text[]), $2::integer, $3::boolean, now() - random() * interval '1 minute'
  ON CONFLICT (did) DO NOTHING RETURNING 1

-- name: add.recipients
UPDATE carpack.account SET recipients = $2 WHERE did = ANY($1::text[])

-- name: add.host
INSERT INTO carpack.host (host, every, due) VALUES ($1, $2::integer, now())
  ON CONFLICT (host) DO UPDATE SET every = excluded.every, due = now()

-- name: add.firehose
INSERT INTO carpack.firehose (url) VALUES ($1) ON CONFLICT (url) DO NOTHING

-- name: claim
WITH running AS (
  SELECT a.host, count(*) AS number FROM carpack.account a
    WHERE (a.holder IS NOT NULL AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = a.holder AND w.alive_until > clock_timestamp())
  AND (a.holder <> $2 OR a.did = ANY($3::text[]))) GROUP BY a.host),
open AS (
  SELECT h.host, h.places - coalesce(r.number, 0) AS room
    FROM carpack.host h LEFT JOIN running r ON r.host = h.host CROSS JOIN LATERAL (
      SELECT a.due FROM carpack.account a WHERE a.host = h.host AND a.due <= now() AND NOT a.paused AND NOT (a.holder IS NOT NULL AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = a.holder AND w.alive_until > clock_timestamp())
  AND (a.holder <> $2 OR a.did = ANY($3::text[])))
        ORDER BY a.due LIMIT 1) first
    WHERE NOT h.paused AND coalesce(h.wait_until, '-infinity') <= now()
      AND h.places > coalesce(r.number, 0)
    ORDER BY first.due LIMIT $1::integer),
chosen AS (
  SELECT next.did, next.holder FROM open CROSS JOIN LATERAL (
    SELECT a.did, a.due, a.holder FROM carpack.account a WHERE a.host = open.host AND a.due <= now() AND NOT a.paused AND NOT (a.holder IS NOT NULL AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = a.holder AND w.alive_until > clock_timestamp())
  AND (a.holder <> $2 OR a.did = ANY($3::text[])))
      ORDER BY a.due LIMIT least(open.room, $1::integer) FOR UPDATE SKIP LOCKED) next
    ORDER BY next.due LIMIT $1::integer)
UPDATE carpack.account a SET holder = $2
  FROM chosen WHERE a.did = chosen.did AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = $2 AND w.alive_until > clock_timestamp())
    AND a.holder IS NOT DISTINCT FROM chosen.holder
  RETURNING a.did, a.host, a.state, extract(epoch FROM now() - a.state_since),
    CASE WHEN a.outcome = 'complete' THEN a.rev END, a.head,
    coalesce(a.identified > now() - interval '7 days', false), a.trash, a.recipients

-- name: locate
SELECT carpack.locate($1, $2, $3) WHERE set_config('synchronous_commit', 'off', true) = 'off'

-- name: postpone
WITH waiting AS (
  UPDATE carpack.host SET places = 1, wait_reason = 'it allows no request',
    wait_until = greatest(wait_until, now() + make_interval(secs => $3::double precision))
    WHERE host = $4)
UPDATE carpack.account SET holder = NULL,
  due = greatest(due, now() + make_interval(secs => $3::double precision))
  WHERE did = $1 AND holder = $2 AND set_config('synchronous_commit', 'off', true) = 'off'

-- name: end
WITH ended AS (
  UPDATE carpack.account SET
    holder = NULL, tried = now(), outcome = $3::carpack.outcome, cause = $4::carpack.cause,
    reason = $5, failures = CASE WHEN $3 = 'failed' THEN failures + 1 ELSE 0 END,
    rev = coalesce($6, rev), head = coalesce($7, head), seen_rev = coalesce($6, rev),
    bytes = coalesce($8::bigint, bytes), added = $9::bigint, trash = $12,
    backed_up = CASE WHEN $3 = 'complete' THEN now() ELSE backed_up END,
    identified = CASE WHEN $13::boolean THEN now() ELSE identified END,
    state = $10::carpack.account_state, evidence = $11::carpack.evidence,
    state_since = CASE WHEN state = $10::carpack.account_state THEN state_since ELSE now() END,
    gone_since = CASE WHEN $10 IN ('missing', 'deleted', 'removed', 'purged')
      THEN coalesce(gone_since, now()) END,
    due = CASE
      WHEN $10 = 'purged' THEN 'infinity'
      WHEN $10 = 'removed' THEN
        now() + make_interval(secs => coalesce($14::integer, 86400))
      WHEN $10 = 'deleted' AND $14::integer IS NOT NULL THEN
        now() + make_interval(secs => least($14::integer, 86400))
      WHEN $10 <> 'active' THEN
        now() + make_interval(secs => greatest(every, 86400))
      WHEN $3 = 'failed' THEN now() + make_interval(
        secs => least(every, 60 * 2 ^ least(failures, 12)) * (0.8 + 0.4 * random()))
      WHEN on_change AND seen_rev > coalesce($6, rev) THEN
        now() + make_interval(secs => least(every, 300))
      ELSE now() + make_interval(secs => every * (0.95 + 0.1 * random()))
    END
    WHERE did = $1 AND holder = $2 AND set_config('synchronous_commit', 'off', true) = 'off' RETURNING host)
UPDATE carpack.host h SET
  places = CASE WHEN $15::boolean THEN greatest(1, places / 2)
    WHEN $3 = 'failed' THEN greatest(1, places - 1) ELSE places + 1 END,
  failures = CASE WHEN $15::boolean THEN failures + 1 ELSE 0 END,
  wait_until = CASE WHEN $15::boolean THEN greatest(wait_until,
    now() + make_interval(secs => 2 ^ least(failures + 1, 12))) ELSE wait_until END,
  wait_reason = CASE WHEN $15::boolean THEN $5 ELSE wait_reason END
  FROM ended WHERE h.host = ended.host AND h.host <> '' AND ($15::boolean
    OR h.failures > 0 OR CASE WHEN $3 = 'failed' THEN h.places > 1
      ELSE h.places < coalesce(h.rate, $16::double precision) END)

-- name: next
SELECT extract(epoch FROM min(greatest(next.due, h.wait_until)) - clock_timestamp())
  FROM carpack.host h CROSS JOIN LATERAL (
    SELECT a.due FROM carpack.account a WHERE a.host = h.host AND NOT a.paused
      AND a.due < 'infinity' AND (a.holder IS NULL OR NOT EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = a.holder AND w.alive_until > clock_timestamp()))
      ORDER BY a.due LIMIT 1) next
  WHERE NOT h.paused

-- name: alarm
WITH gone AS (
  SELECT h.host, count(*) AS number FROM carpack.host h JOIN carpack.account a
    ON a.host = h.host AND a.gone_since > greatest(now() - interval '1 day', h.alarm_cleared)
    WHERE h.host = (SELECT host FROM carpack.account WHERE did = $1) AND h.host <> ''
      AND h.alarm_since IS NULL GROUP BY h.host)
UPDATE carpack.host h SET alarm_since = now() FROM gone
  WHERE h.host = gone.host AND h.alarm_since IS NULL AND gone.number > CASE
    WHEN (SELECT count(*) FROM (SELECT FROM carpack.account a
      WHERE a.host = gone.host LIMIT 501) part) <= 500 THEN 20
    ELSE (SELECT count(*) FROM carpack.account a WHERE a.host = gone.host) / 100.0 END
  RETURNING h.host, gone.number

-- name: plan
UPDATE carpack.account SET trash = $3 WHERE did = $1 AND holder = $2

-- name: mayRemove
SELECT FROM carpack.account a JOIN carpack.host h ON h.host = a.host
  WHERE a.did = $1 AND h.alarm_since IS NULL

-- name: hosts
SELECT host FROM carpack.host WHERE due IS NOT NULL

-- name: claimHost
WITH chosen AS (
  SELECT h.host, h.holder FROM carpack.host h
    WHERE h.due <= now() AND NOT h.paused AND coalesce(h.wait_until, '-infinity') <= now()
      AND (h.holder IS NULL OR h.holder = $1 OR NOT EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = h.holder AND w.alive_until > clock_timestamp()))
    ORDER BY h.due LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE carpack.host h SET holder = $1 FROM chosen
  WHERE h.host = chosen.host AND h.holder IS NOT DISTINCT FROM chosen.holder
  RETURNING h.host

-- name: list
WITH listed AS (
  INSERT INTO carpack.account AS a (did, host, seen_rev, state, every, on_change)
    SELECT did, $1, nullif(rev, ''), state::carpack.account_state, $5::integer, $6::boolean
      FROM unnest($2::text[], $3::text[], $4::text[]) AS new (did, rev, state) ORDER BY did
    ON CONFLICT (did) DO UPDATE SET
      seen_rev = greatest(a.seen_rev, excluded.seen_rev),
      due = CASE WHEN (excluded.state <> a.state
  AND NOT (excluded.state = 'missing' AND a.state IN ('deleted', 'removed', 'purged'))) OR a.on_change AND excluded.seen_rev > a.rev
        THEN least(a.due, now()) ELSE a.due END
    WHERE (excluded.state <> a.state
  AND NOT (excluded.state = 'missing' AND a.state IN ('deleted', 'removed', 'purged'))) OR excluded.seen_rev > coalesce(a.seen_rev, ''))
SELECT FROM carpack.host WHERE host = $1 AND holder = $7

-- name: endListing
UPDATE carpack.host SET holder = NULL, reason = $4, listed = $3::bigint,
  due = CASE WHEN $4::text IS NOT NULL THEN now() + interval '10 minutes'
    ELSE coalesce(now() + make_interval(secs => every), 'infinity') END
  WHERE host = $1 AND holder = $2

-- name: permits
INSERT INTO carpack.host AS h (host, granted, tokens) VALUES ($1, 1, 0)
  ON CONFLICT (host) DO UPDATE SET granted = greatest(0, least(floor(least(greatest(1, coalesce(h.rate, $3::double precision)), h.tokens + coalesce(h.rate, $3::double precision) * extract(epoch FROM clock_timestamp() - h.filled))), $2::double precision)), tokens = least(greatest(1, coalesce(h.rate, $3::double precision)), h.tokens + coalesce(h.rate, $3::double precision) * extract(epoch FROM clock_timestamp() - h.filled)) - greatest(0, least(floor(least(greatest(1, coalesce(h.rate, $3::double precision)), h.tokens + coalesce(h.rate, $3::double precision) * extract(epoch FROM clock_timestamp() - h.filled))), $2::double precision)),
    filled = clock_timestamp()
  RETURNING h.granted, coalesce(h.rate, $3::double precision)

-- name: claimFirehose
WITH chosen AS (
  SELECT f.url, f.holder FROM carpack.firehose f
    WHERE f.holder IS NULL OR f.holder = $1 OR NOT EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = f.holder AND w.alive_until > clock_timestamp())
    ORDER BY f.url LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE carpack.firehose f SET holder = $1 FROM chosen
  WHERE f.url = chosen.url AND f.holder IS NOT DISTINCT FROM chosen.holder
  RETURNING f.url, f.cursor

-- name: release
UPDATE carpack.firehose SET holder = NULL, reason = coalesce($3, reason),
  cursor = CASE WHEN NOT $4::boolean THEN cursor END
  WHERE url = $1 AND holder = $2

-- name: revisions
UPDATE carpack.account a SET
  seen_rev = greatest(coalesce(a.seen_rev, ''), new.rev COLLATE "C"),
  due = CASE WHEN a.on_change AND a.state = 'active' AND new.rev > coalesce(a.rev, '')
    THEN least(a.due, greatest(now(),
      coalesce(a.tried, '-infinity') + make_interval(secs => 300)))
    ELSE a.due END
  FROM unnest($1::text[], $2::text[]) AS new (did, rev)
  WHERE a.did = new.did AND new.rev > coalesce(a.seen_rev, '')

-- name: changes
UPDATE carpack.account SET identified = NULL, due = least(due, now())
  WHERE did = ANY($1::text[]) AND state NOT IN ('removed', 'purged')

-- name: cursor
UPDATE carpack.firehose SET cursor = greatest($3::bigint, cursor), event_time = now(),
  reason = $4 WHERE url = $1 AND holder = $2 RETURNING 1

-- name: accounts
SELECT a.did, a.host, a.state, a.outcome, a.cause, a.reason, to_char(a.backed_up AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
  CASE WHEN a.due < 'infinity' THEN to_char(a.due AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
  CASE WHEN a.paused THEN 'it is paused' WHEN h.paused THEN 'its host is paused'
    WHEN a.holder IS NOT NULL AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = a.holder AND w.alive_until > clock_timestamp()) THEN 'it is being backed up'
    WHEN h.wait_until > now() AND h.wait_until >= a.due THEN 'its host: ' || coalesce(h.wait_reason, '')
    WHEN a.due <= now() AND h.places <= (SELECT count(*) FROM carpack.account o
      WHERE o.host = a.host AND o.holder IS NOT NULL AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = o.holder AND w.alive_until > clock_timestamp()))
      THEN 'its host is busy with others' END,
  CASE WHEN a.due < 'infinity' THEN to_char(greatest(a.due, h.wait_until) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
  a.failures, a.bytes, a.trash
  FROM carpack.account a LEFT JOIN carpack.host h ON h.host = a.host
  WHERE ($1::text[] = '{}' OR a.did = ANY($1::text[])) AND ($2::text IS NULL OR a.host = $2::text)
   AND a.did > $3 ORDER BY a.did LIMIT 1000

-- name: queues
SELECT h.host, queue.number, (SELECT count(*) FROM carpack.account a WHERE a.host = h.host
    AND a.holder IS NOT NULL AND EXISTS (SELECT FROM carpack.worker w
  WHERE w.id = a.holder AND w.alive_until > clock_timestamp())), h.places,
  greatest(0, extract(epoch FROM h.wait_until - now())), h.wait_reason,
  CASE WHEN h.alarm_since IS NULL THEN 0 ELSE 1 END, h.paused
  FROM carpack.host h CROSS JOIN LATERAL (
    SELECT count(*) AS number FROM (SELECT FROM carpack.account a
      WHERE a.host = h.host AND NOT a.paused AND a.due <= now() LIMIT 10001) part) queue
  WHERE queue.number > 0 OR h.wait_until > now() OR h.paused OR h.alarm_since IS NOT NULL
  ORDER BY queue.number DESC, h.host LIMIT 1000

-- name: retry
WITH changed AS (UPDATE carpack.account a SET due = now(), failures = 0 WHERE ($1::text[] = '{}' OR a.did = ANY($1::text[])) AND ($2::text IS NULL OR a.host = $2::text)
  AND a.outcome <> 'complete' AND a.state NOT IN ('removed', 'purged') RETURNING 1) SELECT count(*) FROM changed

-- name: pause
WITH changed AS (UPDATE carpack.account a SET paused = true WHERE ($1::text[] = '{}' OR a.did = ANY($1::text[])) AND ($2::text IS NULL OR a.host = $2::text)
   AND a.state NOT IN ('removed', 'purged') RETURNING 1) SELECT count(*) FROM changed

-- name: pause.host
WITH changed AS (UPDATE carpack.host SET paused = true WHERE host = $1 RETURNING 1) SELECT count(*) FROM changed

-- name: resume
WITH changed AS (UPDATE carpack.account a SET paused = false WHERE ($1::text[] = '{}' OR a.did = ANY($1::text[])) AND ($2::text IS NULL OR a.host = $2::text)
   AND a.state NOT IN ('removed', 'purged') RETURNING 1) SELECT count(*) FROM changed

-- name: resume.host
WITH changed AS (UPDATE carpack.host SET paused = false, alarm_since = NULL,
alarm_cleared = CASE WHEN alarm_since IS NULL THEN alarm_cleared ELSE now() END WHERE host = $1 RETURNING 1) SELECT count(*) FROM changed

-- name: remove
WITH changed AS (DELETE FROM carpack.account a WHERE ($1::text[] = '{}' OR a.did = ANY($1::text[])) AND ($2::text IS NULL OR a.host = $2::text)
   RETURNING 1) SELECT count(*) FROM changed

-- name: remove.host
WITH changed AS (UPDATE carpack.host SET due = NULL, every = NULL WHERE host = $1 RETURNING 1) SELECT count(*) FROM changed

-- name: putAside
UPDATE carpack.account SET state = 'removed', state_since = now(), paused = true, trash = $2,
  holder = NULL WHERE did = $1

-- name: bringBack
UPDATE carpack.account SET state = 'active', state_since = now(), paused = false, due = now(),
  trash = NULL, gone_since = NULL, evidence = NULL, holder = NULL WHERE did = $1

-- name: absent
UPDATE carpack.account SET outcome = 'failed', cause = 'absent', reason = $2, rev = NULL,
  head = NULL, due = now() WHERE did = $1 AND outcome = 'complete'

-- name: status.all
SELECT count(*),
  count(*) FILTER (WHERE coalesce(a.holder IN (SELECT id FROM carpack.worker WHERE alive_until > now()), false)),
  count(*) FILTER (WHERE due <= now() AND NOT paused AND NOT coalesce(a.holder IN (SELECT id FROM carpack.worker WHERE alive_until > now()), false)),
  coalesce(extract(epoch FROM now() - min(due)
    FILTER (WHERE due <= now() AND NOT paused AND NOT coalesce(a.holder IN (SELECT id FROM carpack.worker WHERE alive_until > now()), false))), 0),
  CASE WHEN bool_and(backed_up IS NOT NULL OR state <> 'active')
    THEN to_char(min(backed_up) FILTER (WHERE state = 'active') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
  coalesce(sum(bytes), 0),
  count(*) FILTER (WHERE tried > now() - interval '1 hour'),
  coalesce(sum(added) FILTER (WHERE tried > now() - interval '1 hour'), 0)
FROM carpack.account a

-- name: status.outcomes
SELECT coalesce(outcome::text, 'never'), count(*),
  to_char(min(due) FILTER (WHERE due < 'infinity') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  FROM carpack.account WHERE state = 'active' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20

-- name: status.states
SELECT state, count(*),
  to_char(min(due) FILTER (WHERE due < 'infinity') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  FROM carpack.account WHERE state <> 'active' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20

-- name: status.reasons
SELECT coalesce(cause::text, outcome::text), count(*),
  to_char(min(due) FILTER (WHERE due < 'infinity') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  FROM carpack.account WHERE state = 'active' AND outcome IN ('incomplete', 'failed') GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20

-- name: status.failures
SELECT did, coalesce(reason, ''), CASE WHEN due < 'infinity' THEN to_char(due AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END
  FROM carpack.account WHERE state = 'active' AND outcome = 'failed'
  ORDER BY tried DESC LIMIT 20

-- name: status.sources
SELECT host, reason FROM carpack.host WHERE reason IS NOT NULL
  UNION ALL SELECT host, wait_reason || '; asked again at ' || to_char(wait_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    FROM carpack.host WHERE wait_until > now()
  UNION ALL SELECT url, reason FROM carpack.firehose WHERE reason IS NOT NULL ORDER BY 1

-- name: status.alarms
SELECT host, 'too many accounts gone, since ' || to_char(alarm_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  FROM carpack.host WHERE alarm_since IS NOT NULL ORDER BY 1

-- name: status.workers
SELECT name, to_char(started AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), running, ended, failed
  FROM carpack.worker WHERE alive_until > now() ORDER BY name
