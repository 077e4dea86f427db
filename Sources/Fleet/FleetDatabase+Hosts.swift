internal import ATProtocol
internal import Postgres

/// Hosts: whose accounts they list, and how often they are asked.
extension FleetDatabase {
  /// The hosts that were added, which the user has named.
  ///
  /// - Throws: `DatabaseError`.
  func hosts() async throws -> [String] {
    try await database.persistently(
      "SELECT host FROM carpack.host WHERE due IS NOT NULL", for: Self.shortPatience
    ).compactMap { $0[0] }
  }

  /// The origins of the relays and servers whose firehoses are followed.
  ///
  /// - Throws: `DatabaseError`.
  func firehoseOrigins() async throws -> [String] {
    try await database.persistently("SELECT url FROM carpack.firehose", for: Self.shortPatience)
      .compactMap { $0[0].map(FirehoseAddress.origin) }
  }

  // MARK: Listing

  /// Claims a host that is due to be listed; nil if none is.
  ///
  /// A worker lists one at a time: another that it holds comes from a claim whose answer was lost.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  func claimHost(_ holder: String) async throws -> String? {
    try await database.persistently(
      """
      WITH chosen AS (
        SELECT h.host, h.holder FROM carpack.host h
          WHERE \(Self.isListable) ORDER BY h.due LIMIT 1 FOR UPDATE SKIP LOCKED)
      UPDATE carpack.host h SET holder = $1 FROM chosen
        WHERE h.host = chosen.host AND \(Self.isUnchanged("h.holder", since: "chosen.holder"))
        RETURNING h.host
      """, [holder]
    ).first?.first ?? nil
  }

  /// Whether a worker, `$1`, may list a host `h` now, or does so.
  private static let isListable = """
    h.due <= now() AND NOT h.paused AND coalesce(h.wait_until, '-infinity') <= now()
      AND (h.holder IS NULL OR h.holder = $1 OR NOT \(isAlive("h.holder")))
    """

  /// Whether accounts may still come from a host or a firehose that no other worker is busy with: a
  /// host is to be listed, or a firehose was not read up to the present since the worker began.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  func hasUnreadSources(_ holder: String) async throws -> Bool {
    try await database.persistently(
      """
      SELECT EXISTS (SELECT FROM carpack.host h WHERE \(Self.isListable))
        OR EXISTS (SELECT FROM carpack.firehose f WHERE \(Self.isFollowable) AND \(Self.isUnread))
      """, [holder]
    ).first?.first == "t"
  }

  /// Records accounts as a host lists them: new ones are added, and those that have become
  /// something else, or have a new revision and follow changes, are due.
  ///
  /// A list does not say where a known account is: only its identity does.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: Whether the host is still held.
  func note(_ repos: [FleetListed], of host: String, _ holder: String) async throws -> Bool {
    let settings = try await settings()
    // A server that lists an account as deleted says no more than is known of one that is gone.
    let isOther = """
      (excluded.state <> a.state
        AND NOT (excluded.state = 'missing' AND a.state IN ('deleted', 'removed', 'purged')))
      """
    let known = Dictionary(repos.map { ($0.did, $0) }, uniquingKeysWith: { $1 }).values
    return try await !database.persistently(
      """
      WITH listed AS (
        INSERT INTO carpack.account AS a (did, host, seen_rev, state, every, on_change)
          SELECT did, $1, nullif(rev, ''), state::carpack.account_state, $5::integer, $6::boolean
            FROM unnest($2::text[], $3::text[], $4::text[]) AS new (did, rev, state) ORDER BY did
          ON CONFLICT (did) DO UPDATE SET
            seen_rev = greatest(a.seen_rev, excluded.seen_rev),
            due = CASE WHEN \(isOther) OR a.on_change AND excluded.seen_rev > a.rev
              THEN least(a.due, now()) ELSE a.due END
          WHERE \(isOther) OR excluded.seen_rev > coalesce(a.seen_rev, ''))
      SELECT FROM carpack.host WHERE host = $1 AND holder = $7
      """,
      [
        host, known.map(\.did.text).asArray, known.map { $0.rev ?? "" }.asArray,
        known.map(\.state.rawValue).asArray, "\(settings.every)", "\(settings.onChange)", holder,
      ]
    ).isEmpty
  }

  /// After how many seconds a host whose list broke off is asked again, doubled with each failure
  /// in a row, and the longest such pause.
  private static let (firstPause, longestPause) = (600, 86_400)

  /// Records how a listing ended, and releases the host.
  ///
  /// - Parameters:
  ///   - host: which.
  ///   - holder: the worker's lease.
  ///   - count: how many accounts it has.
  ///   - fault: why it broke off; nil if it did not.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func endListing(of host: String, _ holder: String, count: Int, fault: String?) async throws {
    try await database.persistently(
      """
      UPDATE carpack.host SET holder = NULL, reason = $4, listed = $3::bigint,
        list_failures = CASE WHEN $4::text IS NULL THEN 0 ELSE list_failures + 1 END,
        due = CASE WHEN $4::text IS NULL
          THEN coalesce(now() + make_interval(secs => every), 'infinity')
          ELSE now() + make_interval(secs => (0.9 + 0.2 * random())
            * least(\(Self.longestPause), \(Self.firstPause) * 2 ^ least(list_failures, 12))) END
        WHERE host = $1 AND holder = $2
      """, [host, holder, "\(count)", fault])
  }

  // MARK: Budgets

  /// Takes some of the requests that a server may be asked by all workers together.
  ///
  /// The budget of a host of accounts is in its row, where workers of 0.2.0 keep it, too; that of
  /// any other server, such as a handle's own website, in a row that ``forgetPermits(rate:)``
  /// deletes.
  ///
  /// - Parameters:
  ///   - count: how many are wanted.
  ///   - origin: the server.
  ///   - rate: how many a second it gets, if it has no number of its own.
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: How many it gets now, and how many a second.
  func takeRequests(_ count: Int, of origin: String, rate: Double) async throws
    -> (granted: Int, rate: Double)
  {
    let own = "coalesce(b.rate, $3::double precision)"
    let common = "$3::double precision"
    /// What is granted of a row `b`, at a rate.
    func grant(_ rate: String) -> String {
      let have = """
        least(greatest(1, \(rate)), b.tokens + \(rate) * extract(epoch FROM clock_timestamp() - b.filled))
        """
      let granted = "greatest(0, least(floor(\(have)), $2::double precision))"
      return "granted = \(granted), tokens = \(have) - \(granted), filled = clock_timestamp()"
    }
    let row = try await database.persistently(
      """
      WITH host AS (
        UPDATE carpack.host b SET \(grant(own)) WHERE b.host = $1 RETURNING b.granted, \(own)),
      other AS (
        INSERT INTO carpack.permit AS b (host) SELECT $1 WHERE NOT EXISTS (SELECT FROM host)
          ON CONFLICT (host) DO UPDATE SET \(grant(common)) RETURNING b.granted, \(common))
      SELECT * FROM host UNION ALL SELECT * FROM other
      """, [origin, "\(count)", "\(rate)"]
    ).first
    return (
      row?[0].flatMap { Double($0) }.map { Int($0) } ?? 0, row?[1].flatMap { Double($0) } ?? rate
    )
  }

  /// Deletes budgets that say no more than that all requests are free again, some at a time.
  ///
  /// - Parameter rate: how many requests a second there are in each.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func forgetPermits(rate: Double) async throws {
    try await database.ask(
      """
      DELETE FROM carpack.permit WHERE host IN (
        SELECT host FROM carpack.permit
          WHERE filled < now() - make_interval(secs => greatest(60, 2 / $1::double precision))
          LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED)
      """, ["\(rate)"])
  }
}
