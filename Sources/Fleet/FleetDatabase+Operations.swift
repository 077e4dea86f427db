package import ATProtocol
internal import Postgres

/// An account as an operator sees it.
package struct FleetAccount: Equatable, Sendable {
  /// Which.
  package var did = "", host = ""
  /// Its state, the result of the last backup, and its cause and reason.
  package var state = "", outcome: String?, cause: String?, reason: String?
  /// When it was last backed up completely, and when it is due.
  package var backedUp: String?, due: String?
  /// What it waits for, in words, and until when; nil for nothing.
  package var wait: String?, waitUntil: String?
  /// How often it failed in a row.
  package var failures = 0
  /// The bytes of its archive, and where that was moved aside.
  package var bytes: UInt64?, aside: String?
}

/// A host as an operator sees it.
package struct FleetHost: Equatable, Sendable {
  /// Its origin.
  package var host = ""
  /// How many of its accounts are due, at most 10,001 of them; how many are being backed up, and
  /// how many may be.
  package var due = 0.0, running = 0.0, places = 0.0
  /// In how many seconds it may be asked again, and why not now; 0 for now.
  package var waitSeconds = 0.0, waitReason: String?
  /// 1 if its alarm is raised, so that no archive is removed.
  package var alarm = 0.0
  /// Whether an operator has paused it.
  package var isPaused = false
}

/// Which accounts an operator means.
package struct FleetSelection: Equatable, Sendable {
  /// These; empty for all.
  package var dids: [DID] = []
  /// Those of this host; nil for any.
  package var host: String?
  /// Those whose last backup failed, or was incomplete.
  package var isFailed = false

  /// All accounts.
  package init() {}

  /// The condition in SQL, whose values are `$1` and `$2`.
  var condition: String {
    """
    ($1::text[] = '{}' OR a.did = ANY($1::text[])) AND ($2::text IS NULL OR a.host = $2::text)
      \(isFailed ? "AND a.outcome <> 'complete'" : "")
    """
  }
  var values: [String?] { [dids.map(\.text).asArray, host] }
  /// Whether a host as a whole is meant.
  var isHost: Bool { host != nil && dids.isEmpty && !isFailed }
}

/// What an operator looks at and repairs.
extension FleetDatabase {
  /// Accounts in the order of their DIDs, a page at a time.
  ///
  /// - Parameters:
  ///   - selection: which.
  ///   - last: the last one of the page before; empty for the first page.
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func accounts(_ selection: FleetSelection, after last: String) async throws
    -> [FleetAccount]
  {
    try await database.persistently(
      """
      SELECT a.did, a.host, a.state, a.outcome, a.cause, a.reason, \(Self.time("a.backed_up")),
        CASE WHEN a.due < 'infinity' THEN \(Self.time("a.due")) END,
        CASE WHEN a.paused THEN 'it is paused' WHEN h.paused THEN 'its host is paused'
          WHEN a.holder IS NOT NULL AND \(Self.isAlive("a.holder")) THEN 'it is being backed up'
          WHEN h.wait_until > now() AND h.wait_until >= a.due THEN 'its host: ' || coalesce(h.wait_reason, '')
          WHEN a.due <= now() AND h.places <= (SELECT count(*) FROM carpack.account o
            WHERE o.host = a.host AND o.holder IS NOT NULL AND \(Self.isAlive("o.holder")))
            THEN 'its host is busy with others' END,
        CASE WHEN a.due < 'infinity' THEN \(Self.time("greatest(a.due, h.wait_until)")) END,
        a.failures, a.bytes, a.trash
        FROM carpack.account a LEFT JOIN carpack.host h ON h.host = a.host
        WHERE \(selection.condition) AND a.did > $3 ORDER BY a.did LIMIT \(Self.batch)
      """, selection.values + [last], each: Self.longLimit
    ).map { row in
      FleetAccount(
        did: row[0] ?? "", host: row[1] ?? "", state: row[2] ?? "", outcome: row[3], cause: row[4],
        reason: row[5], backedUp: row[6], due: row[7], wait: row[8], waitUntil: row[9],
        failures: row[10].flatMap { Int($0) } ?? 0, bytes: row[11].flatMap { UInt64($0) },
        aside: row[12])
    }
  }

  /// The hosts that have accounts to be backed up, or wait, those with the longest queues first.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func queues() async throws -> [FleetHost] {
    try await database.ask(
      """
      WITH RECURSIVE \(Self.queue)
      SELECT h.host, due.number, (SELECT count(*) FROM carpack.account a WHERE a.host = h.host
          AND a.holder IS NOT NULL AND \(Self.isAlive("a.holder"))), h.places,
        greatest(0, extract(epoch FROM h.wait_until - now())), h.wait_reason,
        CASE WHEN h.alarm_since IS NULL THEN 0 ELSE 1 END, h.paused
        FROM queue q JOIN carpack.host h ON h.host = q.host CROSS JOIN LATERAL (
          SELECT count(*) AS number FROM (SELECT FROM carpack.account a
            WHERE a.host = h.host AND NOT a.paused AND a.due <= now() LIMIT 10001) part) due
        WHERE due.number > 0 OR h.wait_until > now() OR h.paused OR h.alarm_since IS NOT NULL
        ORDER BY due.number DESC, h.host LIMIT \(Self.batch)
      """
    ).map { row in
      func number(_ place: Int) -> Double { row[place].flatMap { Double($0) } ?? 0 }
      return FleetHost(
        host: row[0] ?? "", due: number(1), running: number(2), places: number(3),
        waitSeconds: number(4), waitReason: number(4) > 0 ? row[5] : nil, alarm: number(6),
        isPaused: row[7] == "t")
    }
  }

  /// Makes accounts due now, whatever they wait for; a host that is chosen as a whole is asked
  /// again.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: How many.
  package func retry(_ selection: FleetSelection) async throws -> Int {
    if selection.isHost {
      try await change(
        host: selection.host,
        """
        wait_until = NULL, failures = 0, list_failures = 0,
        due = CASE WHEN reason IS NULL THEN due ELSE least(due, now()) END
        """)
    }
    return try await change(
      selection, "due = now(), failures = 0", where: "a.state NOT IN ('removed', 'purged')")
  }

  /// Pauses or resumes accounts, or a host with all its accounts.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: How many accounts; 1 for a host.
  package func pause(_ selection: FleetSelection, _ isPaused: Bool) async throws -> Int {
    guard selection.isHost else {
      return try await change(
        selection, "paused = \(isPaused)", where: "a.state NOT IN ('removed', 'purged')")
    }
    // A resume means that the operator has seen the alarm.
    return try await change(
      host: selection.host,
      isPaused
        ? "paused = true"
        : """
        paused = false, alarm_since = NULL, alarm_reason = NULL,
        alarm_cleared = CASE WHEN alarm_since IS NULL THEN alarm_cleared ELSE now() END
        """)
  }

  /// Takes accounts out of the fleet, and forgets them; their archives stay.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: How many.
  package func remove(_ selection: FleetSelection) async throws -> Int {
    let count =
      try await database.ask(
        """
        WITH gone AS (DELETE FROM carpack.account a WHERE \(selection.condition) RETURNING a.did),
        forgotten AS (DELETE FROM carpack.attempt t USING gone WHERE t.did = gone.did)
        SELECT count(*) FROM gone
        """, selection.values, within: Self.longLimit
      ).first?.first?.flatMap { Int($0) } ?? 0
    if selection.isHost { try await change(host: selection.host, "due = NULL, every = NULL") }
    return count
  }

  /// Records that the archive of an account is moved aside, until an operator brings it back.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func putAside(_ did: String, at key: String) async throws {
    try await database.ask(
      """
      UPDATE carpack.account SET state = 'removed', state_since = now(), paused = true, trash = $2,
        holder = NULL WHERE did = $1
      """, [did, key])
  }

  /// Records that the archive of an account is in its place again.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func bringBack(_ did: String) async throws {
    try await database.ask(
      """
      UPDATE carpack.account SET state = 'active', state_since = now(), paused = false, due = now(),
        trash = NULL, gone_since = NULL, evidence = NULL, witness = NULL, holder = NULL WHERE did = $1
      """, [did])
  }

  /// Records that the archive of an account is not as recorded, and makes the account due.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func markAbsent(_ did: String, _ reason: String) async throws {
    try await database.ask(
      """
      WITH changed AS (
        UPDATE carpack.account SET outcome = 'failed', cause = 'absent', reason = $2, rev = NULL,
          head = NULL, due = now(), others = others + 1
          WHERE did = $1 AND outcome = 'complete' RETURNING state, \(Self.slot(isComplete: "false"))),
      \(Self.keeping("changed", "'failed', state, 'absent', $2, 0, NULL"))
      SELECT FROM changed
      """, [did, reason])
  }

  private func change(
    _ selection: FleetSelection, _ assignments: String, where condition: String
  ) async throws -> Int {
    try await count(
      "UPDATE carpack.account a SET \(assignments) WHERE \(selection.condition) AND \(condition)",
      selection.values)
  }

  @discardableResult
  private func change(host: String?, _ assignments: String) async throws -> Int {
    try await count("UPDATE carpack.host SET \(assignments) WHERE host = $1", [host])
  }

  /// Makes a change, and returns how many rows it changed.
  private func count(_ change: String, _ values: [String?]) async throws -> Int {
    try await database.ask(
      "WITH changed AS (\(change) RETURNING 1) SELECT count(*) FROM changed", values,
      within: Self.longLimit
    ).first?.first?.flatMap { Int($0) } ?? 0
  }
}
