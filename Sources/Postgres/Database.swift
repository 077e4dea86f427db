internal import Dispatch
internal import IPLD
internal import Synchronization

/// A connection to PostgreSQL, opened when it is first needed and again after it broke.
///
/// 1. Statements run one after the other, in a queue of their own.
/// 2. Callers do not wait for that queue: they get the answer, or an error when the time is over or
///    the task is cancelled, whatever libpq, the resolver of names and the server do in the
///    meantime.
/// 3. A connection whose answer did not come in time is closed: what comes next on it is unknown.
package final class Database: Sendable {
  /// A row of an answer: a text for each column, nil for NULL.
  package typealias Row = [String?]

  /// How long a statement may take, with connecting.
  package static let answerLimit: Duration = .seconds(8)
  /// How long to wait for an unreachable database by default.
  package static let patience: Duration = .seconds(120)
  /// How long connecting to one address of the server may take, unless the user says otherwise.
  private static let connectLimit: Duration = .seconds(4)
  private let queue = DispatchQueue(label: "database")
  private let url: String
  private let grace: Duration
  /// Taken by the queue alone.
  private let connection = Mutex<PostgresConnection?>(nil)

  /// A connection that is not open yet.
  ///
  /// - Parameters:
  ///   - url: where, `postgres://…`, or what libpq takes instead; what it does not say comes from
  ///     the variables that libpq knows (`PGPASSWORD`, `PGPASSFILE`, …).
  ///   - grace: how long a statement may take on after it is not waited for any more, so that what
  ///   is asked next comes after it.
  package init(_ url: String, grace: Duration = .milliseconds(300)) {
    (self.url, self.grace) = (url, grace)
  }

  /// Runs a statement, and tries again as long as there is no connection.
  ///
  /// A statement whose answer was lost may be carried out twice.
  ///
  /// - Parameters:
  ///   - statement: one statement of SQL.
  ///   - values: the values of `$1`, `$2` and so on, as text; nil for NULL.
  ///   - patience: how long all of it may take.
  ///   - limit: how long one answer is waited for.
  /// - Throws: ``DatabaseError`` if the statement is refused, or there is no connection for this
  ///   long; `CancellationError`, at once.
  @discardableResult
  package func persistently(
    _ statement: String, _ values: [String?] = [], for patience: Duration = patience,
    each limit: Duration = answerLimit
  ) async throws -> [Row] {
    let end = ContinuousClock.now + patience
    var pause = Duration.milliseconds(100)
    while true {
      do {
        return try await ask(
          statement, values, within: min(limit, ContinuousClock.now.duration(to: end)))
      } catch let failure as DatabaseError {
        guard failure.kind == .connection, ContinuousClock.now + pause < end else { throw failure }
      }
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .seconds(5))
    }
  }

  /// Runs a statement once.
  ///
  /// An abandoned statement may still be carried out.
  ///
  /// - Parameters:
  ///   - statement: one statement of SQL.
  ///   - values: the values of `$1`, `$2` and so on, as text; nil for NULL.
  ///   - limit: how long the answer is waited for.
  /// - Throws: ``DatabaseError``; `CancellationError`, at once.
  @discardableResult
  package func ask(
    _ statement: String, _ values: [String?] = [], within limit: Duration = answerLimit
  )
    async throws -> [Row]
  {
    let answer = Awaited<[Row]>()
    return try await answer.value(within: limit, else: DatabaseError.noAnswer) {
      queue.async { [self] in
        if answer.given != nil { return }
        answer.give(Result { try carry(statement, values, for: answer) })
      }
    }
  }

  private func carry(_ statement: String, _ values: [String?], for answer: Awaited<[Row]>) throws
    -> [Row]
  {
    try connection.withLock { connection in
      defer { if connection?.isUsable == false { connection = nil } }
      let opened = try connection ?? opened()
      connection = opened
      // An abandoned statement is not begun: it could take leases that are never released.
      guard answer.given == nil else { throw DatabaseError.noAnswer }
      return try opened.ask(statement, values) {
        answer.given.map { .now < $0 + grace } ?? true
      }
    }
  }

  private func opened() throws(DatabaseError) -> PostgresConnection {
    let opened = try PostgresConnection(url, connectingWithin: Self.connectLimit)
    // Notices that something exists already are not wanted; libpq would write them to standard
    // error. Statements here take little, also where the planner believes otherwise: to compile
    // them would take ten times as long as to run them.
    let settings = """
      SELECT set_config('client_min_messages', 'warning', false), set_config('jit', 'off', false)
      """
    let end = ContinuousClock.now + Self.connectLimit
    _ = try opened.ask(settings, []) { .now < end }
    return opened
  }
}

extension Array where Element == String {
  /// An array of texts, as PostgreSQL writes it.
  package var asArray: String {
    let items = map { text in
      "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
    return "{" + items.joined(separator: ",") + "}"
  }
}
