internal import ATProtocol

/// Hosts: whose accounts they list, and how often they are asked.
extension FleetDatabase {
  // MARK: Listing

  /// The hosts that were added, which the user has named.
  ///
  /// - Throws: ``DatabaseError``.
  func hosts() async throws -> [String] {
    try await database.persistently("SELECT host FROM carpack.host", for: Self.shortPatience)
      .compactMap { $0[0] }
  }

  /// A host that is held, to be listed.
  struct HostLease: Sendable {
    let host: String
    let holder: String
    /// How many seconds lie between two lists; nil for one list.
    let every: Int?
  }

  /// Takes a host that is due to be listed; nil if none is.
  ///
  /// - Throws: ``DatabaseError``.
  func takeHost(holder: String, seconds: Int) async throws -> HostLease? {
    let row = try await database.persistently(
      """
      WITH free AS (
        SELECT host FROM carpack.host
        WHERE due <= clock_timestamp()
          AND (leased_until IS NULL OR leased_until <= clock_timestamp())
        ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED)
      UPDATE carpack.host h
        SET holder = $1, leased_until = clock_timestamp() + make_interval(secs => $2::integer)
        FROM free WHERE h.host = free.host RETURNING h.host, h.every
      """, [holder, "\(seconds)"]
    ).first
    guard let row, let host = row[0] else { return nil }
    return HostLease(host: host, holder: holder, every: row[1].flatMap { Int($0) })
  }

  /// Notes accounts as a host lists them: new ones are added, and those that have a new revision
  /// are due, if they follow changes.
  ///
  /// - Throws: ``DatabaseError``.
  /// - Returns: Whether the host is still held.
  func note(_ repos: [FleetListed], of lease: HostLease, seconds: Int) async throws -> Bool {
    let settings = try await settings()
    let known = Dictionary(repos.map { ($0.did, $0) }, uniquingKeysWith: { $1 }).values
    try await database.persistently(
      """
      INSERT INTO carpack.account AS a (did, host, seen_rev, state, every, on_change)
        SELECT did, $1, nullif(rev, ''), state, $5::integer, $6::boolean
          FROM unnest($2::text[], $3::text[], $4::text[]) AS new (did, rev, state)
          ORDER BY did
        ON CONFLICT (did) DO UPDATE SET
          host = excluded.host,
          seen_rev = greatest(a.seen_rev, excluded.seen_rev),
          due = CASE
            WHEN a.state <> excluded.state AND (a.state <> 'removed' OR excluded.state = 'active')
              OR a.on_change AND excluded.seen_rev > a.rev
            THEN least(a.due, clock_timestamp()) ELSE a.due END
        WHERE a.host IS DISTINCT FROM excluded.host
          OR excluded.seen_rev > coalesce(a.seen_rev, '')
          OR a.state <> excluded.state
      """,
      [
        lease.host, known.map(\.did.text).asArray, known.map { $0.rev ?? "" }.asArray,
        known.map(\.state.rawValue).asArray,
        "\(settings.every)", "\(settings.onChange)",
      ])
    return try await !database.persistently(
      """
      UPDATE carpack.host
        SET leased_until = clock_timestamp() + make_interval(secs => $3::integer)
        WHERE host = $1 AND holder = $2 RETURNING 1
      """, [lease.host, lease.holder, "\(seconds)"]
    ).isEmpty
  }

  /// Says how a list came out.
  ///
  /// - Parameters:
  ///   - lease: of which host.
  ///   - count: how many accounts it has.
  ///   - fault: why it broke off; nil if it did not.
  /// - Throws: ``DatabaseError``.
  func end(_ lease: HostLease, count: Int, fault: String?) async throws {
    _ = try await database.persistently(
      """
      UPDATE carpack.host SET holder = NULL, leased_until = NULL, reason = $4,
        listed = $3::bigint,
        due = clock_timestamp()
          + make_interval(secs => CASE WHEN $4::text IS NULL THEN every ELSE 600 END)
        WHERE host = $1 AND holder = $2
      """, [lease.host, lease.holder, "\(count)", fault])
  }

  // MARK: Budgets

  /// Takes some of the requests that a host may be asked by all workers together.
  ///
  /// - Parameters:
  ///   - count: how many are wanted.
  ///   - host: which host.
  ///   - rate: how many a second it gets, if nothing is known of it.
  /// - Throws: ``DatabaseError``.
  /// - Returns: How many it gets now, and how many a second.
  func takeRequests(_ count: Int, of host: String, rate: Double) async throws
    -> (granted: Int, rate: Double)
  {
    let have = "least(burst, tokens + rate * extract(epoch FROM clock_timestamp() - filled))"
    let granted = "greatest(0, least(floor(\(have)), $2::double precision))"
    while true {
      let row = try await database.persistently(
        """
        UPDATE carpack.budget
          SET granted = \(granted), tokens = \(have) - \(granted), filled = clock_timestamp()
          WHERE host = $1 RETURNING granted, rate
        """, [host, "\(count)"]
      ).first
      if let row {
        return (
          row[0].flatMap { Double($0) }.map { Int($0) } ?? 0,
          row[1].flatMap { Double($0) } ?? rate
        )
      }
      try await database.persistently(
        """
        INSERT INTO carpack.budget (host, rate, burst, tokens)
          VALUES ($1, $2::double precision, greatest(1, $2::double precision), 1)
          ON CONFLICT (host) DO NOTHING
        """, [host, "\(rate)"])
    }
  }
}
