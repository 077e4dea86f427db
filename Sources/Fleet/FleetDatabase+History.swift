package import ATProtocol
internal import Postgres

/// The result of a backup of an account, as it is kept.
package struct FleetAttempt: Equatable, Sendable {
  /// When it ended.
  package let ended: String
  /// The result, the account's state then, the cause and the reason.
  package let outcome: String, state: String, cause: String?, reason: String?
  /// The bytes that were added to the archive.
  package let added: UInt64
  /// Which worker; nil for a check of the store.
  package let worker: String?
}

/// The last results of each account.
extension FleetDatabase {
  /// How many complete backups of an account are kept, and how many others: a year of complete ones
  /// must not push out the failure before them.
  private static let kept = 10

  /// The row of the next result of an account, which takes the place of the oldest of its kind, in
  /// SQL; `completes` and `others` count both kinds.
  static func slot(isComplete: String) -> String {
    "CASE WHEN \(isComplete) THEN completes % \(kept) ELSE \(kept) + others % \(kept) END AS slot"
  }

  /// A statement, in a `WITH`, that keeps the result of the account `$1`.
  ///
  /// - Parameters:
  ///   - changed: the name of a query that has a row with a `slot` if there is a result.
  ///   - values: the outcome, state, cause, reason, added bytes and worker, in SQL.
  static func keeping(_ changed: String, _ values: String) -> String {
    """
    kept AS (
      INSERT INTO carpack.attempt (did, slot, ended, outcome, state, cause, reason, added, worker)
        SELECT $1, slot, clock_timestamp(), \(values) FROM \(changed)
        ON CONFLICT (did, slot) DO UPDATE SET ended = excluded.ended, outcome = excluded.outcome,
          state = excluded.state, cause = excluded.cause, reason = excluded.reason,
          added = excluded.added, worker = excluded.worker)
    """
  }

  /// The last results of an account, the newest first; nil if it is not in the fleet.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  package func history(of did: DID) async throws -> [FleetAttempt]? {
    let rows = try await database.persistently(
      """
      SELECT \(Self.time("t.ended")), t.outcome, t.state, t.cause, t.reason, t.added, t.worker
        FROM carpack.account a LEFT JOIN carpack.attempt t ON t.did = a.did
        WHERE a.did = $1 ORDER BY t.ended DESC
      """, [did.text])
    guard !rows.isEmpty else { return nil }
    return rows.compactMap { row in
      guard let ended = row[0], let outcome = row[1], let state = row[2] else { return nil }
      return FleetAttempt(
        ended: ended, outcome: outcome, state: state, cause: row[3], reason: row[4],
        added: row[5].flatMap { UInt64($0) } ?? 0, worker: row[6])
    }
  }
}
