internal import ATProtocol
internal import Postgres

/// Firehoses: which worker follows each, and from where.
extension FleetDatabase {
  /// A firehose that a worker holds.
  struct FirehoseLease: Sendable {
    let url: String
    let holder: String
    /// The last event that was recorded; nil for none.
    let cursor: Int64?
  }

  /// Claims a firehose that no worker follows; nil if there is none.
  ///
  /// A worker follows one at a time: another that it holds comes from a claim whose answer was
  /// lost.
  ///
  /// - Parameters:
  ///   - holder: the worker's lease.
  ///   - isUnread: whether only one that has not been read since the worker began is wanted.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func claimFirehose(_ holder: String, isUnread: Bool = false) async throws -> FirehoseLease? {
    let row = try await database.persistently(
      """
      WITH chosen AS (
        SELECT f.url, f.holder FROM carpack.firehose f
          WHERE \(Self.isFollowable) \(isUnread ? "AND \(Self.isUnread)" : "")
          ORDER BY f.read_until NULLS FIRST, f.url LIMIT 1 FOR UPDATE SKIP LOCKED)
      UPDATE carpack.firehose f SET holder = $1 FROM chosen
        WHERE f.url = chosen.url AND \(Self.isUnchanged("f.holder", since: "chosen.holder"))
        RETURNING f.url, f.cursor
      """, [holder]
    ).first
    guard let row, let url = row[0] else { return nil }
    let cursor = row[1].flatMap { Int64($0) }
    return FirehoseLease(url: url, holder: holder, cursor: cursor.flatMap { $0 < 0 ? nil : $0 })
  }

  /// Whether a worker, `$1`, may follow a firehose `f`.
  static let isFollowable =
    "(f.holder IS NULL OR f.holder = $1 OR NOT \(isAlive("f.holder")))"
  /// Whether a firehose `f` was not read up to the present since a worker, `$1`, began.
  static let isUnread = """
    (coalesce(f.read_until, '-infinity') < (SELECT w.started FROM carpack.worker w WHERE w.id = $1))
    """

  /// Releases a firehose, which was read up to the present, or broke off.
  ///
  /// - Parameters:
  ///   - lease: which.
  ///   - fault: why it broke off; nil if it did not, and then an earlier reason stays.
  ///   - forgetsCursor: whether the next worker begins where the server is: it cannot use the
  ///     cursor.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func release(_ lease: FirehoseLease, fault: String?, forgetsCursor: Bool = false) async throws {
    try await database.persistently(
      """
      UPDATE carpack.firehose SET holder = NULL, read_until = now(), reason = coalesce($3, reason),
        cursor = CASE WHEN NOT $4::boolean THEN cursor END
        WHERE url = $1 AND holder = $2
      """, [lease.url, lease.holder, fault, "\(forgetsCursor)"])
  }

  /// Records what events said, and the last event recorded, which never goes back.
  ///
  /// - Parameters:
  ///   - marks: what events have told.
  ///   - lease: of which firehose.
  ///   - gap: which events were lost before these; nil for none.
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: Whether the firehose is still held.
  func note(_ marks: FirehoseMarks, of lease: FirehoseLease, gap: String? = nil) async throws
    -> Bool
  {
    if !marks.revisions.isEmpty {
      let revisions = marks.revisions.sorted { $0.key.text < $1.key.text }
      try await database.persistently(
        """
        UPDATE carpack.account a SET
          seen_rev = greatest(coalesce(a.seen_rev, ''), new.rev COLLATE "C"),
          due = CASE WHEN a.on_change AND a.state = 'active' AND new.rev > coalesce(a.rev, '')
            THEN least(a.due, greatest(now(),
              coalesce(a.tried, '-infinity') + make_interval(secs => \(Self.pauseAfterChange))))
            ELSE a.due END
          FROM unnest($1::text[], $2::text[]) AS new (did, rev)
          WHERE a.did = new.did AND new.rev > coalesce(a.seen_rev, '')
        """, [revisions.map(\.key.text).asArray, revisions.map(\.value).asArray])
    }
    if !marks.changed.isEmpty {
      // Only a backup finds out the state and the server of an account.
      try await database.persistently(
        """
        UPDATE carpack.account SET identified = NULL, due = least(due, now())
          WHERE did = ANY($1::text[]) AND state NOT IN ('removed', 'purged')
        """, [marks.changed.map(\.text).sorted().asArray])
    }
    return try await !database.persistently(
      """
      UPDATE carpack.firehose SET cursor = greatest($3::bigint, cursor), event_time = now(),
        reason = $4 WHERE url = $1 AND holder = $2 RETURNING 1
      """, [lease.url, lease.holder, marks.cursor.map { "\($0)" }, gap]
    ).isEmpty
  }
}
