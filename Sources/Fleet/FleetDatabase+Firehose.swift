internal import ATProtocol

/// Firehoses: which worker follows each, and from where.
extension FleetDatabase {
  /// A firehose that is held.
  struct FirehoseLease: Sendable {
    let url: String
    let holder: String
    /// The last event that was noted; nil for none.
    let cursor: Int64?
  }

  /// Takes a firehose that no worker follows; nil if there is none.
  ///
  /// - Throws: ``DatabaseError``.
  func takeFirehose(holder: String, seconds: Int) async throws -> FirehoseLease? {
    let row = try await database.persistently(
      """
      WITH free AS (
        SELECT url FROM carpack.firehose
        WHERE leased_until IS NULL OR leased_until <= clock_timestamp()
        ORDER BY url LIMIT 1 FOR UPDATE SKIP LOCKED)
      UPDATE carpack.firehose f
        SET holder = $1, leased_until = clock_timestamp() + make_interval(secs => $2::integer)
        FROM free WHERE f.url = free.url RETURNING f.url, f.cursor
      """, [holder, "\(seconds)"]
    ).first
    guard let row, let url = row[0] else { return nil }
    let cursor = row[1].flatMap { Int64($0) }
    return FirehoseLease(url: url, holder: holder, cursor: cursor.flatMap { $0 < 0 ? nil : $0 })
  }

  /// Lets go of a firehose.
  ///
  /// - Parameters:
  ///   - lease: of which.
  ///   - fault: why it broke off; nil if it did not, and what is known of an earlier time stays.
  /// - Throws: ``DatabaseError``; `CancellationError`.
  func release(_ lease: FirehoseLease, fault: String?) async throws {
    try await database.persistently(
      """
      UPDATE carpack.firehose SET holder = NULL, leased_until = NULL,
        reason = coalesce($3, reason)
        WHERE url = $1 AND holder = $2
      """, [lease.url, lease.holder, fault])
  }

  /// Lets go of the firehose that somebody holds, if one does.
  ///
  /// - Throws: ``DatabaseError``; `CancellationError`.
  func releaseFirehose(heldBy holder: String, for patience: Duration) async throws {
    try await database.persistently(
      "UPDATE carpack.firehose SET holder = NULL, leased_until = NULL WHERE holder = $1",
      [holder], for: patience)
  }

  /// Begins where the server is, the next time: what it had before it does not have any more.
  ///
  /// - Throws: ``DatabaseError``.
  func forgetCursor(_ lease: FirehoseLease) async throws {
    try await database.persistently(
      "UPDATE carpack.firehose SET cursor = NULL WHERE url = $1 AND holder = $2",
      [lease.url, lease.holder])
  }

  /// Notes what events have told, and how far they have been noted, which is never less far than
  /// before.
  ///
  /// - Parameters:
  ///   - marks: what events have told.
  ///   - lease: of which firehose.
  ///   - seconds: how long it is held from now on.
  ///   - gap: what of it was lost before these events; nil for nothing.
  /// - Throws: ``DatabaseError``.
  /// - Returns: Whether the firehose is still held.
  func note(_ marks: FirehoseMarks, of lease: FirehoseLease, seconds: Int, gap: String? = nil)
    async throws -> Bool
  {
    if !marks.revisions.isEmpty {
      let revisions = marks.revisions.sorted { $0.key.text < $1.key.text }
      try await database.persistently(
        """
        UPDATE carpack.account a SET
          seen_rev = greatest(coalesce(a.seen_rev, ''), new.rev COLLATE "C"),
          due = CASE WHEN a.on_change AND a.state = 'active' AND new.rev > coalesce(a.rev, '')
            THEN least(a.due, greatest(clock_timestamp(),
              coalesce(a.tried, '-infinity') + make_interval(secs => \(Self.pauseAfterChange))))
            ELSE a.due END
          FROM unnest($1::text[], $2::text[]) AS new (did, rev)
          WHERE a.did = new.did AND new.rev > coalesce(a.seen_rev, '')
        """, [revisions.map(\.key.text).asArray, revisions.map(\.value).asArray])
    }
    if !marks.states.isEmpty {
      // What an account is only a backup finds out; that it may be something else is known now.
      let states = marks.states.sorted { $0.key.text < $1.key.text }
      try await database.persistently(
        """
        UPDATE carpack.account a SET due = least(a.due, clock_timestamp())
          FROM unnest($1::text[], $2::text[]) AS new (did, state)
          WHERE a.did = new.did AND a.state <> new.state AND a.state <> 'removed'
        """, [states.map(\.key.text).asArray, states.map(\.value.rawValue).asArray])
    }
    return try await !database.persistently(
      """
      UPDATE carpack.firehose SET cursor = greatest($3::bigint, cursor),
        event_time = clock_timestamp(), reason = $5,
        leased_until = clock_timestamp() + make_interval(secs => $4::integer)
        WHERE url = $1 AND holder = $2 RETURNING 1
      """, [lease.url, lease.holder, marks.cursor.map { "\($0)" }, "\(seconds)", gap]
    ).isEmpty
  }
}
