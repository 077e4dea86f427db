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

  /// A host whose list broke off, that is not asked for a while, or that has lost too many
  /// accounts; a firehose that broke off or has lost events.
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
  /// The oldest of the accounts' last complete backups; nil if an account never had one.
  package var oldest: String?
  /// The bytes of all archives.
  package var bytes: UInt64 = 0
  /// Backups that ended in the last hour, and the bytes that they added.
  package var hourly = 0, hourlyBytes: UInt64 = 0
  /// Hosts and firehoses that broke off or wait and are tried again, and firehoses that have lost
  /// events.
  package var sources: [Source] = []
  /// Hosts that have lost too many accounts, so that nothing of theirs is removed.
  package var alarms: [Source] = []
  /// The workers.
  package var workers: [Worker] = []
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
        count(*) FILTER (WHERE tried > now() - interval '1 hour'),
        coalesce(sum(added) FILTER (WHERE tried > now() - interval '1 hour'), 0)
      FROM carpack.account a
      """
    ).first
    func number(_ place: Int) -> Double { all?[place].flatMap { Double($0) } ?? 0 }
    (status.accounts, status.running) = (Int(number(0)), Int(number(1)))
    (status.due, status.lateness) = (Int(number(2)), number(3))
    status.oldest = all?[4]
    status.bytes = all?[5].flatMap { UInt64($0) } ?? 0
    (status.hourly, status.hourlyBytes) = (Int(number(6)), all?[7].flatMap { UInt64($0) } ?? 0)
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
      SELECT host, reason FROM carpack.host WHERE reason IS NOT NULL
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
    status.workers = try await database.persistently(
      """
      SELECT name, \(Self.time("started")), running, ended, failed
        FROM carpack.worker WHERE alive_until > now() ORDER BY name
      """
    ).map { row in
      FleetStatus.Worker(
        name: row[0] ?? "", since: row[1] ?? "", running: row[2].flatMap { Int($0) } ?? 0,
        ended: row[3].flatMap { Int($0) } ?? 0, failed: row[4].flatMap { Int($0) } ?? 0)
    }
    return status
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
