package import ATProtocol
internal import Postgres

/// What a fleet knows: accounts, hosts and firehoses, which worker holds each, and the results.
///
/// A worker has one lease for all that it holds. A worker whose lease has run out counts as gone:
/// others take what it held, its results are rejected, and conditional writes to the archives keep
/// the two apart.
package struct FleetDatabase: Sendable {
  let database: Database

  /// How many accounts go into a statement.
  static let batch = 1000

  /// A fleet in a database; nothing is sent to it yet.
  ///
  /// - Parameter url: where the database is, `postgres://…`.
  package init(_ url: String) { database = Database(url) }

  /// Makes the tables, or brings them up to date, and keeps the settings.
  ///
  /// - Throws: `DatabaseError`.
  package func initialize(_ settings: FleetSettings) async throws {
    // A person waits: a database that is away is said at once. Workers that are at work may hold
    // the tables' locks in another order: the database ends one of the two, and it is tried again.
    try await database.ask("SELECT 1")
    try await database.persistently(
      FleetTables.creation, for: Self.longLimit, each: Self.longLimit)
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

  /// How long a statement that reads all accounts may take.
  static let longLimit: Duration = .seconds(600)
  /// How long to wait for an unreachable database while a person waits.
  static let shortPatience: Duration = .seconds(5)

  /// The settings.
  ///
  /// - Parameter patience: how long to wait for an unreachable database.
  /// - Throws: `DatabaseError`.
  package func settings(waiting patience: Duration = shortPatience) async throws -> FleetSettings {
    let rows = try await database.persistently(
      "SELECT name, value FROM carpack.setting", for: patience)
    return try FleetSettings(
      Dictionary(
        rows.compactMap { row in row[0].flatMap { name in row[1].map { (name, $0) } } },
        uniquingKeysWith: { $1 }))
  }

  // MARK: Workers

  /// A worker in SQL whose lease has not run out; `holder` is the column that names it.
  static func isAlive(_ holder: String) -> String {
    """
    EXISTS (SELECT FROM carpack.worker w
      WHERE w.id = \(holder) AND w.alive_until > clock_timestamp())
    """
  }

  /// Whether the holder that a statement sees is the one that it has found in the row it locked.
  ///
  /// Another worker may have claimed the row in the meantime: one that began after this statement
  /// seems to be gone in ``isAlive(_:)``.
  static func isUnchanged(_ holder: String, since locked: String) -> String {
    "\(holder) IS NOT DISTINCT FROM \(locked)"
  }

  /// Begins a worker's lease, and forgets workers that have been gone for long.
  ///
  /// - Parameters:
  ///   - id: a name that no other lease has.
  ///   - name: what the worker is called.
  ///   - seconds: how long it runs.
  /// - Throws: `DatabaseError`; `CancellationError`.
  func begin(_ id: String, _ name: String, seconds: Int) async throws {
    try await database.persistently(
      """
      WITH gone AS (DELETE FROM carpack.worker WHERE alive_until < now() - interval '1 hour')
      INSERT INTO carpack.worker (id, name, alive_until, seen)
        VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3::integer), clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until, seen = excluded.seen
      """, [id, name, "\(seconds)"])
  }

  /// Renews a worker's lease.
  ///
  /// What it has done is counted with each result (``end(_:_:rate:grace:)``), and what it works on
  /// is what it holds; the number of these that is kept here is for a `status` of 0.2.0.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  /// - Returns: Whether it had not run out.
  func renew(_ id: String, running: Int, seconds: Int, within limit: Duration) async throws -> Bool
  {
    try await !database.ask(
      """
      UPDATE carpack.worker SET alive_until = clock_timestamp() + make_interval(secs => $2::integer),
        seen = clock_timestamp(), running = $3::integer
        WHERE id = $1 AND alive_until > clock_timestamp() RETURNING 1
      """, [id, "\(seconds)", "\(running)"], within: limit
    ).isEmpty
  }

  /// Ends a worker's lease, so that all that it held is free, also if its task was cancelled.
  ///
  /// A failure is ignored: leases run out by themselves.
  ///
  /// - Parameters:
  ///   - id: the worker's lease.
  ///   - limit: how long that may take.
  /// - Throws: `DatabaseError`, except for a database that cannot be reached.
  func leave(_ id: String, within limit: Duration) async throws {
    do {
      _ = try await Task.detached {
        try await database.persistently(
          "DELETE FROM carpack.worker WHERE id = $1", [id], for: limit)
      }.value
    } catch let error as DatabaseError where error.kind == .connection {}
  }

  // MARK: Accounts, hosts and firehoses come in

  /// Adds accounts; those that are there stay as they are, except for their recipients.
  ///
  /// They are due in no order: a list may name many accounts of one slow host in a row.
  ///
  /// - Parameters:
  ///   - dids: which.
  ///   - every: how many seconds lie between two backups; nil for the setting.
  ///   - onChange: whether a new revision makes them due; nil for the setting.
  ///   - recipients: the age recipients to whom new archives of these accounts are sealed, too.
  /// - Throws: `DatabaseError`.
  /// - Returns: How many are new.
  package func add(
    _ dids: [DID], every: Int? = nil, onChange: Bool? = nil, recipients: [String] = []
  ) async throws -> Int {
    let settings = try await settings()
    var count = 0
    var rest = dids[...]
    while !rest.isEmpty {
      count += try await database.persistently(
        """
        INSERT INTO carpack.account (did, every, on_change, due)
          SELECT unnest($1::text[]), $2::integer, $3::boolean, now() - random() * interval '1 minute'
          ON CONFLICT (did) DO NOTHING RETURNING 1
        """,
        [
          rest.prefix(Self.batch).map(\.text).asArray, "\(every ?? settings.every)",
          "\(onChange ?? settings.onChange)",
        ]
      ).count
      if !recipients.isEmpty {
        try await database.persistently(
          "UPDATE carpack.account SET recipients = $2 WHERE did = ANY($1::text[])",
          [rest.prefix(Self.batch).map(\.text).asArray, recipients.joined(separator: " ")])
      }
      rest = rest.dropFirst(Self.batch)
    }
    // A minute may pass before the server does so by itself, and until then each claim would read
    // all accounts.
    if count >= Self.batch { try await database.persistently("ANALYZE carpack.account") }
    return count
  }

  /// Adds a host whose accounts are listed, all of them, and listed again after a while.
  ///
  /// - Throws: `DatabaseError`.
  package func add(host: String, every: Int?) async throws {
    try await database.persistently(
      """
      INSERT INTO carpack.host (host, every, due) VALUES ($1, $2::integer, now())
        ON CONFLICT (host) DO UPDATE SET every = excluded.every, due = now(), list_failures = 0
      """, [host, every.map { "\($0)" }])
  }

  /// Adds a stream of events that marks accounts as due.
  ///
  /// - Throws: `DatabaseError`.
  package func add(firehose url: String) async throws {
    try await database.persistently(
      "INSERT INTO carpack.firehose (url) VALUES ($1) ON CONFLICT (url) DO NOTHING", [url])
  }
}
