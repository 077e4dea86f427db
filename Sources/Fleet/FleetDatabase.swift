package import ATProtocol

/// What a fleet knows: accounts, who works on them, what came of it, and what each host may be
/// asked.
///
/// 1. An account is held by one worker at a time, as long as its lease runs; what a worker says of
///    an account that it does not hold any more is not taken.
/// 2. A lease that has run out is as good as none: another worker takes the account, and the
///    archive's conditional write keeps the two apart.
package struct FleetDatabase: Sendable {
  let database: Database

  /// How many accounts go into a statement.
  private static let batch = 1000

  /// The fleet in a database, which is not asked yet.
  ///
  /// - Parameter url: where the database is, `postgres://…`.
  package init(_ url: String) { database = Database(url) }

  /// Makes the tables, if they are not there, and keeps the settings.
  ///
  /// - Throws: ``DatabaseError``.
  package func initialize(_ settings: FleetSettings) async throws {
    try await database.ask(FleetTables.creation)
    // Hosts that have a rate of their own keep it.
    try await database.ask(
      """
      UPDATE carpack.budget
        SET rate = $1::double precision, burst = greatest(1, $1::double precision)
        WHERE rate = (
          SELECT value::double precision FROM carpack.setting WHERE name = 'rate')
      """, ["\(settings.requestsPerSecond)"])
    let values = settings.values
    let names = values.keys.sorted()
    try await database.ask(
      """
      WITH new AS (SELECT unnest($1::text[]) AS name, unnest($2::text[]) AS value),
        gone AS (DELETE FROM carpack.setting WHERE name NOT IN (SELECT name FROM new))
      INSERT INTO carpack.setting SELECT name, value FROM new
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
      """, [names.asArray, names.compactMap { values[$0] }.asArray])
  }

  /// How long a database that is away is waited for where a person waits, too.
  static let shortPatience: Duration = .seconds(5)
  /// How long a worker that was told to end takes to let go of what it holds.
  private static let farewell: Duration = .seconds(1)

  /// The settings.
  ///
  /// - Parameter patience: how long a database that is away is waited for.
  /// - Throws: ``DatabaseError``.
  package func settings(waiting patience: Duration = .seconds(5)) async throws -> FleetSettings {
    let rows = try await database.persistently(
      "SELECT name, value FROM carpack.setting", for: patience)
    return try FleetSettings(
      Dictionary(
        rows.compactMap { row in
          row[0].flatMap { name in row[1].map { (name, $0) } }
        }, uniquingKeysWith: { $1 }))
  }

  // MARK: Accounts come in

  /// Adds accounts; those that are there stay as they are.
  ///
  /// - Parameters:
  ///   - dids: which.
  ///   - every: how many seconds lie between two backups; nil for what holds for all.
  ///   - onChange: whether a new revision makes them due; nil for what holds for all.
  /// - Throws: ``DatabaseError``.
  /// - Returns: How many are new.
  package func add(_ dids: [DID], every: Int? = nil, onChange: Bool? = nil) async throws -> Int {
    let settings = try await settings()
    var count = 0
    var rest = dids[...]
    while !rest.isEmpty {
      let rows = try await database.persistently(
        """
        INSERT INTO carpack.account (did, every, on_change)
          SELECT unnest($1::text[]), $2::integer, $3::boolean
          ON CONFLICT (did) DO NOTHING RETURNING 1
        """,
        [
          rest.prefix(Self.batch).map(\.text).asArray, "\(every ?? settings.every)",
          "\(onChange ?? settings.onChange)",
        ])
      count += rows.count
      rest = rest.dropFirst(Self.batch)
    }
    return count
  }

  /// Adds a host whose accounts are listed, all of them, and listed again after a while.
  ///
  /// - Throws: ``DatabaseError``.
  package func add(host: String, every: Int?) async throws {
    try await database.persistently(
      """
      INSERT INTO carpack.host (host, every, due) VALUES ($1, $2::integer, now())
        ON CONFLICT (host) DO UPDATE SET every = excluded.every, due = now()
      """, [host, every.map { "\($0)" }])
  }

  /// Adds a stream of events that marks accounts as due.
  ///
  /// - Throws: ``DatabaseError``.
  package func add(firehose url: String) async throws {
    try await database.persistently(
      "INSERT INTO carpack.firehose (url) VALUES ($1) ON CONFLICT (url) DO NOTHING", [url])
  }

  // MARK: Accounts are worked on

  /// An account that is held.
  package struct Lease: Equatable, Sendable {
    /// Which.
    package let did: DID
    /// What proves it.
    let holder: String
    /// What the account was when it was last heard of.
    let state: FleetOutcome.State
    /// For how many seconds it has been so.
    let stateAge: Double
  }

  /// Takes accounts that are due, those that have been so for longest first.
  ///
  /// - Parameters:
  ///   - count: how many at most.
  ///   - holder: what no other lease is called.
  ///   - seconds: how long they are held.
  /// - Throws: ``DatabaseError``.
  func take(_ count: Int, holder: String, seconds: Int) async throws -> [Lease] {
    try await database.persistently(
      """
      WITH free AS (
        SELECT did FROM carpack.account
        WHERE due <= clock_timestamp()
          AND (leased_until IS NULL OR leased_until <= clock_timestamp())
        ORDER BY due LIMIT $1::integer FOR UPDATE SKIP LOCKED)
      UPDATE carpack.account a
        SET holder = $2, leased_until = clock_timestamp() + make_interval(secs => $3::integer)
        FROM free WHERE a.did = free.did
        RETURNING a.did, a.state, extract(epoch FROM clock_timestamp() - a.state_since)
      """, ["\(count)", holder, "\(seconds)"]
    ).compactMap { row in
      guard let text = row[0] else { return nil }
      return Lease(
        did: try DID(text), holder: holder,
        state: row[1].flatMap { FleetOutcome.State(rawValue: $0) } ?? .active,
        stateAge: row[2].flatMap { Double($0) } ?? 0)
    }
  }

  /// Holds an account for longer.
  ///
  /// - Parameters:
  ///   - lease: which.
  ///   - seconds: for how long.
  ///   - limit: how long the answer is waited for.
  /// - Throws: ``DatabaseError``; `CancellationError`.
  /// - Returns: Whether it is still held.
  func renew(_ lease: Lease, seconds: Int, within limit: Duration = Database.answerLimit)
    async throws -> Bool
  {
    try await !database.ask(
      """
      UPDATE carpack.account
        SET leased_until = clock_timestamp() + make_interval(secs => $3::integer)
        WHERE did = $1 AND holder = $2 RETURNING 1
      """, [lease.did.text, lease.holder, "\(seconds)"], within: limit
    ).isEmpty
  }

  /// Lets go of all accounts and hosts that somebody holds: nothing came of them.
  ///
  /// - Parameters:
  ///   - holder: how the names of the leases begin.
  ///   - patience: how long it may take.
  /// - Throws: ``DatabaseError``; `CancellationError`.
  func release(heldBy holder: String, for patience: Duration = shortPatience) async throws {
    try await database.persistently(
      """
      WITH accounts AS (
        UPDATE carpack.account SET holder = NULL, leased_until = NULL
          WHERE starts_with(holder, $1))
      UPDATE carpack.host SET holder = NULL, leased_until = NULL
        WHERE starts_with(holder, $1)
      """, [holder], for: patience)
  }

  /// Lets go of leases when the work is over, also if that is because its task was cancelled.
  ///
  /// It is not insisted on: leases run out by themselves.
  ///
  /// - Parameter release: does it, within the time that it is given.
  /// - Throws: What `release` throws, but for a database that is not to be had.
  func letGo(_ release: @escaping @Sendable (FleetDatabase, Duration) async throws -> Void)
    async throws
  {
    do {
      do {
        try Task.checkCancellation()
        try await release(self, Self.shortPatience)
      } catch is CancellationError {
        try await Task.detached { try await release(self, Self.farewell) }.value
      }
    } catch let error as DatabaseError where error.kind == .connection {}
  }

  /// Says what came of an account, lets go of it, and sets when it is due again.
  ///
  /// A newer revision than was backed up makes it due soon, if it follows changes, and once: a
  /// server may claim revisions that it does not have.
  ///
  /// - Throws: ``DatabaseError``.
  func end(_ lease: Lease, _ outcome: FleetOutcome) async throws {
    _ = try await database.persistently(
      """
      UPDATE carpack.account SET
        holder = NULL, leased_until = NULL, tried = clock_timestamp(),
        outcome = $3, reason = $4, kind = $5,
        host = coalesce($6, host), rev = coalesce($7, rev), seen_rev = coalesce($7, rev),
        bytes = coalesce($8::bigint, bytes), added = $9::bigint,
        failures = CASE WHEN $3 = 'failed' THEN failures + 1 ELSE 0 END,
        backed_up = CASE WHEN $3 = 'complete' THEN clock_timestamp() ELSE backed_up END,
        state_since = CASE WHEN state = $10 THEN state_since ELSE clock_timestamp() END,
        state = $10,
        due = CASE
          WHEN $10 = 'removed' THEN 'infinity'
          WHEN $10 <> 'active' THEN
            clock_timestamp() + make_interval(secs => greatest(every, $11::integer))
          WHEN $3 = 'failed' THEN clock_timestamp() + make_interval(
            secs => least(every, 60 * 2 ^ least(failures, 12)) * (0.8 + 0.4 * random()))
          WHEN on_change AND seen_rev > coalesce($7, rev) THEN
            clock_timestamp() + make_interval(secs => least(every, \(Self.pauseAfterChange)))
          ELSE clock_timestamp() + make_interval(secs => every * (0.95 + 0.1 * random()))
        END
        WHERE did = $1 AND holder = $2
      """,
      [
        lease.did.text, lease.holder, outcome.verdict.rawValue, outcome.reason, outcome.kind,
        outcome.host, outcome.rev, outcome.bytes.map { "\($0)" }, "\(outcome.added)",
        outcome.state.rawValue, "\(Self.pauseOfInactive)",
      ])
  }

  /// For how many seconds an account that was backed up because it had changed is left alone.
  static let pauseAfterChange = 300
  /// After how many seconds an account that is not to be had is asked for again, at the least.
  private static let pauseOfInactive = 86_400

  /// In how many seconds the next account is due; nil if none is.
  ///
  /// - Throws: ``DatabaseError``.
  func secondsToNext() async throws -> Double? {
    try await database.persistently(
      """
      SELECT extract(epoch FROM min(greatest(due, leased_until)) - clock_timestamp())
        FROM (SELECT due, leased_until FROM carpack.account
          WHERE due < 'infinity' ORDER BY due LIMIT 1000) AS next
      """
    ).first?.first?.flatMap { Double($0) }
  }

  // MARK: Workers

  /// Says that a worker is at work, and forgets those that have not been for a week.
  ///
  /// - Throws: ``DatabaseError``.
  func report(_ name: String, _ counters: FleetCounters.Values) async throws {
    try await database.ask(
      """
      WITH gone AS (DELETE FROM carpack.worker WHERE seen < now() - interval '7 days')
      INSERT INTO carpack.worker (name, running, ended, failed, added)
        VALUES ($1, $2::integer, $3::bigint, $4::bigint, $5::bigint)
        ON CONFLICT (name) DO UPDATE SET seen = now(), running = excluded.running,
          ended = excluded.ended, failed = excluded.failed, added = excluded.added
      """,
      [
        name, "\(counters.running)", "\(counters.ended)", "\(counters.failed)",
        "\(counters.added)",
      ])
  }
}
