package import ATProtocol
internal import Postgres

/// Accounts: which are due, and their results.
extension FleetDatabase {
  /// An account that a worker holds.
  package struct Lease: Equatable, Sendable {
    /// Which.
    package let did: DID
    /// The worker's lease.
    let holder: String
    /// The worker's name, with which its lease begins.
    var worker: String { String(holder.prefix { $0 != "/" }) }
    /// The origin of its server; empty before it was looked up.
    package let host: String
    /// What the account was, and for how many seconds it has been that.
    package var state = FleetOutcome.State.active, stateAge = 0.0
    /// The revision and the commit that are backed up, if nothing is missing.
    package var rev: String?, head: String?
    /// Whether its identity was looked up within a week, and has not changed since.
    package var isIdentified = false
    /// Where its archive was moved aside.
    package var trash: String?
    /// The age recipients to which a new archive is sealed besides the worker's.
    var recipients: [String] = []
  }

  /// Claims accounts that are due, of each host no more than it has room for, those first that have
  /// been due for longest.
  ///
  /// The hosts that have something due are found first, each by one look at the index: neither the
  /// other accounts of a host are scanned, however many wait, nor hosts without accounts.
  ///
  /// If the answer to a claim was lost, the worker does not know what it holds: that is claimed
  /// again.
  ///
  /// - Parameters:
  ///   - count: how many at most.
  ///   - holder: the worker's lease.
  ///   - known: the accounts that the worker knows that it holds.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func claim(_ count: Int, _ holder: String, knowing known: Set<DID> = []) async throws -> [Lease] {
    let isHeld = """
      (a.holder IS NOT NULL AND \(Self.isAlive("a.holder"))
        AND (a.holder <> $2 OR a.did = ANY($3::text[])))
      """
    let isFree = "a.due <= now() AND NOT a.paused AND NOT \(isHeld)"
    return try await database.persistently(
      """
      WITH RECURSIVE \(Self.queue), running AS (
        SELECT a.host, count(*) AS number FROM carpack.account a
          WHERE \(isHeld) GROUP BY a.host),
      open AS (
        SELECT h.host, h.places - coalesce(r.number, 0) AS room
          FROM queue q JOIN carpack.host h ON h.host = q.host
            LEFT JOIN running r ON r.host = h.host CROSS JOIN LATERAL (
            SELECT a.due FROM carpack.account a WHERE a.host = h.host AND \(isFree)
              ORDER BY a.due LIMIT 1) first
          WHERE q.due <= now() AND NOT h.paused AND coalesce(h.wait_until, '-infinity') <= now()
            AND h.places > coalesce(r.number, 0)
          ORDER BY first.due LIMIT $1::integer),
      chosen AS (
        SELECT next.did, next.holder FROM open CROSS JOIN LATERAL (
          SELECT a.did, a.due, a.holder FROM carpack.account a WHERE a.host = open.host AND \(isFree)
            ORDER BY a.due LIMIT least(open.room, $1::integer) FOR UPDATE SKIP LOCKED) next
          ORDER BY next.due LIMIT $1::integer)
      UPDATE carpack.account a SET holder = $2
        FROM chosen WHERE a.did = chosen.did AND \(Self.isAlive("$2"))
          AND \(Self.isUnchanged("a.holder", since: "chosen.holder"))
        RETURNING a.did, a.host, a.state, extract(epoch FROM now() - a.state_since),
          CASE WHEN a.outcome = 'complete' THEN a.rev END, a.head,
          coalesce(a.identified > now() - interval '7 days', false), a.trash, a.recipients
      """, ["\(count)", holder, known.map(\.text).asArray]
    ).compactMap { row in
      guard let text = row[0], let host = row[1] else { return nil }
      return Lease(
        did: try DID(text), holder: holder, host: host,
        state: row[2].flatMap { FleetOutcome.State(rawValue: $0) } ?? .active,
        stateAge: row[3].flatMap { Double($0) } ?? 0, rev: row[4], head: row[5],
        isIdentified: row[6] == "t", trash: row[7],
        recipients: row[8]?.split(separator: " ").map(String.init) ?? [])
    }
  }

  /// The hosts that have accounts, and when the first account of each is due, as a query `queue` in
  /// `WITH RECURSIVE`.
  ///
  /// It goes through the index from one host to the next.
  static let queue = """
    queue AS (
      (SELECT a.host, a.due FROM carpack.account a WHERE NOT a.paused ORDER BY a.host, a.due LIMIT 1)
      UNION ALL
      SELECT next.host, next.due FROM queue q CROSS JOIN LATERAL (
        SELECT a.host, a.due FROM carpack.account a WHERE NOT a.paused AND a.host > q.host
          ORDER BY a.host, a.due LIMIT 1) next)
    """

  /// Puts a held account into the queue of its server.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: Whether it is still held; if not, the server has no room now.
  func locate(_ lease: Lease, at server: String) async throws -> Bool {
    try await database.persistently(
      "SELECT carpack.locate($1, $2, $3) WHERE \(Self.isWrittenLater)",
      [lease.did.text, server, lease.holder]
    ).first?.first == "t"
  }

  /// Releases an account until a server allows requests again: all accounts of that server wait.
  ///
  /// - Parameters:
  ///   - lease: the account.
  ///   - seconds: how long.
  ///   - origin: the server.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func putOff(_ lease: Lease, for seconds: Double, _ origin: String) async throws {
    try await database.persistently(
      """
      WITH waiting AS (
        UPDATE carpack.host SET places = 1, wait_reason = 'it allows no request',
          wait_until = greatest(wait_until, now() + make_interval(secs => $3::double precision))
          WHERE host = $4)
      UPDATE carpack.account SET holder = NULL,
        due = greatest(due, now() + make_interval(secs => $3::double precision))
        WHERE did = $1 AND holder = $2 AND \(Self.isWrittenLater)
      """, [lease.did.text, lease.holder, "\(seconds)", origin])
  }

  /// Records the result for an account, releases it, and sets when it is due again.
  ///
  /// The result is kept with the last ones of the account, and counted for the worker.
  ///
  /// A newer revision than was backed up makes it due soon, if it follows changes, but only once: a
  /// server may claim revisions that it does not have. A host that failed has fewer places and is
  /// left alone for a while, longer with each failure; each success gives it one place more, and
  /// each failure of an account one less.
  ///
  /// - Parameters:
  ///   - lease: the account.
  ///   - outcome: the result.
  ///   - rate: how many requests a second a host gets that has no number of its own: more places
  ///     would not help.
  ///   - grace: in how many seconds an archive that was moved aside is examined again.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func end(_ lease: Lease, _ outcome: FleetOutcome, rate: Double = 10, grace: Int? = nil)
    async throws
  {
    try await database.persistently(
      """
      WITH ended AS (
        UPDATE carpack.account SET
          holder = NULL, tried = now(), outcome = $3::carpack.outcome, cause = $4::carpack.cause,
          reason = $5, failures = CASE WHEN $3 = 'failed' THEN failures + 1 ELSE 0 END,
          rev = coalesce($6, rev), head = coalesce($7, head), seen_rev = coalesce($6, rev),
          bytes = coalesce($8::bigint, bytes), added = $9::bigint, trash = $12,
          backed_up = CASE WHEN $3 = 'complete' THEN now() ELSE backed_up END,
          identified = CASE WHEN $13::boolean THEN now() ELSE identified END,
          state = $10::carpack.account_state,
          completes = completes + CASE WHEN $3 = 'complete' THEN 1 ELSE 0 END,
          others = others + CASE WHEN $3 = 'complete' THEN 0 ELSE 1 END,
          evidence = CASE WHEN $10 IN ('removed', 'purged')
            THEN coalesce($11::carpack.evidence, evidence) ELSE $11::carpack.evidence END,
          witness = CASE WHEN $10 IN ('missing', 'deleted', 'removed', 'purged')
            THEN coalesce($17, witness) END,
          state_since = CASE WHEN state = $10::carpack.account_state THEN state_since ELSE now() END,
          gone_since = CASE WHEN $10 IN ('missing', 'deleted', 'removed', 'purged')
            THEN coalesce(gone_since, now()) END,
          due = CASE
            WHEN $10 = 'purged' THEN 'infinity'
            WHEN $10 = 'removed' THEN
              now() + make_interval(secs => coalesce($14::integer, \(Self.pauseOfInactive)))
            WHEN $10 = 'deleted' AND $14::integer IS NOT NULL THEN
              now() + make_interval(secs => least($14::integer, \(Self.pauseOfInactive)))
            WHEN $10 <> 'active' THEN
              now() + make_interval(secs => greatest(every, \(Self.pauseOfInactive)))
            WHEN $3 = 'failed' THEN now() + make_interval(
              secs => least(every, 60 * 2 ^ least(failures, 12)) * (0.8 + 0.4 * random()))
            WHEN on_change AND seen_rev > coalesce($6, rev) THEN
              now() + make_interval(secs => least(every, \(Self.pauseAfterChange)))
            ELSE now() + make_interval(secs => every * (0.95 + 0.1 * random()))
          END
          WHERE did = $1 AND holder = $2 AND \(Self.isWrittenLater)
          RETURNING host, \(Self.slot(isComplete: "$3 = 'complete'"))),
      counted AS (
        UPDATE carpack.worker w SET ended = w.ended + 1,
          failed = w.failed + CASE WHEN $3 = 'failed' THEN 1 ELSE 0 END
          FROM ended WHERE w.id = $2),
      \(Self.keeping(
        "ended",
        "$3::carpack.outcome, $10::carpack.account_state, $4::carpack.cause, $5, $9::bigint, $18"))
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
      """,
      [
        lease.did.text, lease.holder, outcome.verdict.rawValue, outcome.cause?.rawValue,
        outcome.reason, outcome.rev, outcome.head, outcome.bytes.map { "\($0)" },
        "\(outcome.added)", outcome.state.rawValue, outcome.evidence?.rawValue, outcome.trash,
        "\(outcome.isIdentified)", grace.map { "\($0)" }, "\(outcome.isHostFault)", "\(rate)",
        outcome.witness, lease.worker,
      ])
  }

  /// True, and has PostgreSQL answer before what a statement has changed is on its disk.
  ///
  /// Waiting for the disk, while others wait for the row of the same host, would cost more than all
  /// else that an account does. If the database's machine fails just then, the account is backed up
  /// again, as if its worker had been killed: nothing is new. What was planned of its archive
  /// (``plan(_:aside:)``) is on the disk before that is touched.
  private static let isWrittenLater = "set_config('synchronous_commit', 'off', true) = 'off'"

  /// For how many seconds an account that was backed up because it had changed is left alone.
  static let pauseAfterChange = 300
  /// After how many seconds at least an account that its server does not serve is requested again.
  private static let pauseOfInactive = 86_400

  /// In how many seconds the next account may be requested; nil if none is.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  func secondsToNext() async throws -> Double? {
    try await database.persistently(
      """
      WITH RECURSIVE \(Self.queue)
      SELECT extract(epoch FROM min(greatest(next.due, h.wait_until)) - clock_timestamp())
        FROM queue q JOIN carpack.host h ON h.host = q.host CROSS JOIN LATERAL (
          SELECT a.due FROM carpack.account a WHERE a.host = h.host AND NOT a.paused
            AND a.due < 'infinity' AND (a.holder IS NULL OR NOT \(Self.isAlive("a.holder")))
            ORDER BY a.due LIMIT 1) next
        WHERE NOT h.paused
      """
    ).first?.first?.flatMap { Double($0) }
  }

  // MARK: Deletions

  /// What the host of an account that is gone has lost besides.
  ///
  /// Accounts that an operator has paused or moved aside do not count, and of the others only those
  /// with an archive: a host can list any number that it does not have.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  func losses(about did: DID) async throws -> HostLosses {
    let others = "SELECT count(*) FROM carpack.account a WHERE a.host = h.host"
    let row = try await database.persistently(
      """
      SELECT h.host, h.alarm_since IS NOT NULL,
        CASE WHEN h.alarm_since IS NULL
          THEN (\(others) AND NOT a.paused AND a.bytes IS NOT NULL) END,
        CASE WHEN h.alarm_since IS NULL AND h.host <> '' THEN (\(others)
          AND a.gone_since > greatest(now() - interval '1 day', h.alarm_cleared)) END,
        CASE WHEN h.alarm_since IS NULL THEN (\(others)
          AND a.gone_since IS NOT NULL AND a.did <> own.did AND NOT a.paused
          AND a.state IN ('deleted', 'removed', 'purged') AND a.witness IS NULL
          AND a.evidence IS DISTINCT FROM 'tombstone' AND a.state_since
            > greatest(now() - interval '\(DeletionRule.window) days', h.alarm_cleared)) END,
        own.witness = '\(DeletionRule.theOperator)'
          OR own.state = 'deleted' AND own.state_since <= h.alarm_cleared
        FROM carpack.account own JOIN carpack.host h ON h.host = own.host WHERE own.did = $1
      """, [did.text]
    ).first
    func number(_ place: Int) -> Int { row?[place].flatMap { Int($0) } ?? 0 }
    return HostLosses(
      host: (row?[0] ?? nil) ?? "", accounts: number(2), goneInADay: number(3),
      onItsWord: number(4),
      // Of an account that is not in the fleet any more nothing is removed.
      isAlarmed: row?[1] != "f", isApproved: row?[5] == "t")
  }

  /// Raises the alarm of a host: none of its archives is removed until an operator clears it.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: Whether it was not raised before.
  func raiseAlarm(_ host: String, _ reason: String) async throws -> Bool {
    try await !database.persistently(
      """
      UPDATE carpack.host SET alarm_since = now(), alarm_reason = $2
        WHERE host = $1 AND alarm_since IS NULL RETURNING 1
      """, [host, reason]
    ).isEmpty
  }

  /// Records where the archive of an account is being moved aside, before it goes.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  func plan(_ lease: Lease, aside key: String) async throws {
    try await database.persistently(
      "UPDATE carpack.account SET trash = $3 WHERE did = $1 AND holder = $2",
      [lease.did.text, lease.holder, key])
  }
}
