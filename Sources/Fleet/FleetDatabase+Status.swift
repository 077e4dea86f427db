internal import Postgres

/// The state of a fleet.
package struct FleetStatus: Equatable, Sendable {
  /// A number of accounts that have something in common.
  package struct Count: Equatable, Sendable {
    /// What they have in common.
    package let name: String
    /// How many.
    package let count: Int
    /// The earliest time that one of them is tried again; nil if none is.
    package let nextTry: String?
  }

  /// A worker whose lease runs.
  package struct Worker: Equatable, Sendable {
    /// Its name.
    package let name: String
    /// When it began.
    package let since: String
    /// How many accounts it works on.
    package let running: Int
    /// How many backups it has ended, and how many of them failed.
    package let ended: Int, failed: Int
    /// For how many seconds it has given no sign of life, if for longer than one that is well: it
    /// was killed, or cannot reach the database.
    package let silentSeconds: Int?
  }

  /// A worker that did not end, and whose lease has run out within an hour: it was killed, or could
  /// not reach the database.
  package struct LostWorker: Equatable, Sendable {
    /// Its name.
    package let name: String
    /// When it began, and when its lease has run out.
    package let since: String, until: String
    /// How many backups it had ended.
    package let ended: Int
  }

  /// An account that could not be backed up.
  package struct Failure: Equatable, Sendable {
    /// Which.
    package let did: String
    /// Why.
    package let reason: String
    /// When it is tried again.
    package let nextTry: String?
  }

  /// A host whose list broke off, that is not asked for a while, or whose alarm is raised; a
  /// firehose that broke off or has lost events.
  package struct Source: Equatable, Sendable {
    /// Its address.
    package let url: String
    /// Why.
    package let reason: String
  }

  /// All accounts.
  package var accounts = 0
  /// Active accounts by the result of the last backup: `complete`, `incomplete`, `failed`, `never`.
  package var outcomes: [Count] = []
  /// Accounts that are not active, by what they are.
  package var states: [Count] = []
  /// Active accounts that are not complete, by the cause.
  package var reasons: [Count] = []
  /// Some of the accounts that failed, those tried last first.
  package var failures: [Failure] = []
  /// How many are due and not worked on, and for how many seconds the first of them has been.
  package var due = 0, lateness = 0.0
  /// How many are being worked on.
  package var running = 0
  /// The oldest of the active accounts' last complete backups; nil if one of them never had one, or
  /// there is none.
  package var oldest: String?
  /// The bytes of all archives.
  package var bytes: UInt64 = 0
  /// Accounts whose last backup ended in the last hour, those whose last try then failed, and the
  /// bytes that were added.
  package var hourly = 0, hourlyFailed = 0, hourlyBytes: UInt64 = 0
  /// Hosts and firehoses that broke off or wait and are tried again, and firehoses that have lost
  /// events.
  package var sources: [Source] = []
  /// Hosts whose alarm is raised, so that nothing of theirs is removed.
  package var alarms: [Source] = []
  /// The workers.
  package var workers: [Worker] = []
  /// Workers that are gone without having ended.
  package var lostWorkers: [LostWorker] = []
}

extension FleetDatabase {
  static func time(_ column: String) -> String {
    "to_char(\(column) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
  }

  /// How many failures, and reasons, are named.
  private static let maximumNamed = 20

  /// The state of the fleet.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func status() async throws -> FleetStatus {
    var status = FleetStatus()
    let isHeld =
      "coalesce(a.holder IN (SELECT id FROM carpack.worker WHERE alive_until > now()), false)"
    let all = try await rows(
      """
      SELECT count(*),
        count(*) FILTER (WHERE \(isHeld)),
        count(*) FILTER (WHERE due <= now() AND NOT paused AND NOT \(isHeld)),
        coalesce(extract(epoch FROM now() - min(due)
          FILTER (WHERE due <= now() AND NOT paused AND NOT \(isHeld))), 0),
        CASE WHEN bool_and(backed_up IS NOT NULL OR state <> 'active')
          THEN \(Self.time("min(backed_up) FILTER (WHERE state = 'active')")) END,
        coalesce(sum(bytes), 0),
        count(*) FILTER (WHERE tried > now() - interval '1 hour' AND outcome <> 'failed'),
        count(*) FILTER (WHERE tried > now() - interval '1 hour' AND outcome = 'failed'),
        coalesce(sum(added) FILTER (WHERE tried > now() - interval '1 hour'), 0)
      FROM carpack.account a
      """
    ).first
    func number(_ place: Int) -> Double { all?[place].flatMap { Double($0) } ?? 0 }
    (status.accounts, status.running) = (Int(number(0)), Int(number(1)))
    (status.due, status.lateness) = (Int(number(2)), number(3))
    status.oldest = all?[4]
    status.bytes = all?[5].flatMap { UInt64($0) } ?? 0
    (status.hourly, status.hourlyFailed) = (Int(number(6)), Int(number(7)))
    status.hourlyBytes = all?[8].flatMap { UInt64($0) } ?? 0
    status.outcomes = try await counts(
      "coalesce(outcome::text, 'never')", where: "state = 'active'")
    status.states = try await counts("state", where: "state <> 'active'")
    status.reasons = try await counts(
      "coalesce(cause::text, outcome::text)",
      where: "state = 'active' AND outcome IN ('incomplete', 'failed')")
    status.failures = try await rows(
      """
      SELECT did, coalesce(reason, ''), CASE WHEN due < 'infinity' THEN \(Self.time("due")) END
        FROM carpack.account WHERE state = 'active' AND outcome = 'failed'
        ORDER BY tried DESC LIMIT \(Self.maximumNamed)
      """
    ).map { FleetStatus.Failure(did: $0[0] ?? "", reason: $0[1] ?? "", nextTry: $0[2]) }
    status.sources = try await database.persistently(
      """
      SELECT host, reason || coalesce('; listed again at '
          || CASE WHEN due < 'infinity' THEN \(Self.time("due")) END, '')
          FROM carpack.host WHERE reason IS NOT NULL
        UNION ALL SELECT host, wait_reason || '; asked again at ' || \(Self.time("wait_until"))
          FROM carpack.host WHERE wait_until > now()
        UNION ALL SELECT url, reason FROM carpack.firehose WHERE reason IS NOT NULL ORDER BY 1
      """
    ).map { FleetStatus.Source(url: $0[0] ?? "", reason: $0[1] ?? "") }
    status.alarms = try await database.persistently(
      """
      SELECT host, coalesce(alarm_reason, 'too many accounts are gone') || ', since ' || \(Self.time("alarm_since"))
        FROM carpack.host WHERE alarm_since IS NOT NULL ORDER BY 1
      """
    ).map { FleetStatus.Source(url: $0[0] ?? "", reason: $0[1] ?? "") }
    (status.workers, status.lostWorkers) = try await workers()
    return status
  }

  /// After how many seconds without a sign of life a worker is called silent: one that is well gives
  /// one every ten seconds.
  private static let silence = 30

  private func workers() async throws -> ([FleetStatus.Worker], [FleetStatus.LostWorker]) {
    let rows = try await database.persistently(
      """
      SELECT w.name, \(Self.time("w.started")), coalesce(held.number, 0), w.ended, w.failed,
        CASE WHEN w.alive_until <= now() THEN \(Self.time("w.alive_until")) END,
        CASE WHEN w.seen < now() - interval '\(Self.silence) seconds'
          THEN floor(extract(epoch FROM now() - w.seen)) END
        FROM carpack.worker w LEFT JOIN (
          SELECT holder, count(*) AS number FROM carpack.account WHERE holder IS NOT NULL
            GROUP BY holder) held ON held.holder = w.id
        -- One that could not renew its lease goes on with another.
        WHERE w.alive_until > now() OR NOT EXISTS (SELECT FROM carpack.worker o
          WHERE o.name = w.name AND o.alive_until > w.alive_until)
        ORDER BY w.name, w.started
      """)
    func number(_ text: String?) -> Int? { text.flatMap { Int($0) } }
    var (workers, lost): ([FleetStatus.Worker], [FleetStatus.LostWorker]) = ([], [])
    for row in rows {
      let (name, since, ended) = (row[0] ?? "", row[1] ?? "", number(row[3]) ?? 0)
      if let until = row[5] {
        lost.append(.init(name: name, since: since, until: until, ended: ended))
      } else {
        workers.append(
          .init(
            name: name, since: since, running: number(row[2]) ?? 0, ended: ended,
            failed: number(row[4]) ?? 0, silentSeconds: number(row[6])))
      }
    }
    return (workers, lost)
  }

  /// Runs a query that reads all accounts.
  private func rows(_ statement: String) async throws -> [Database.Row] {
    try await database.persistently(statement, each: Self.longLimit)
  }

  private func counts(_ column: String, where condition: String) async throws
    -> [FleetStatus.Count]
  {
    try await rows(
      """
      SELECT \(column), count(*),
        \(Self.time("min(due) FILTER (WHERE due < 'infinity')"))
        FROM carpack.account WHERE \(condition) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT \(Self.maximumNamed)
      """
    ).map { row in
      FleetStatus.Count(
        name: row[0] ?? "", count: row[1].flatMap { Int($0) } ?? 0, nextTry: row[2])
    }
  }
}
