internal import IPLD
internal import LibC
internal import Live

/// A connection to PostgreSQL, opened when it is first needed and again after it broke.
///
/// Statements go one after the other, in a queue of its own: the client library blocks.
actor Database {
  private let queue = OwnQueue("database")
  private let url: String
  private var connection: OpenConnection?

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe queue.asUnownedSerialExecutor()
  }

  /// A connection that is not open yet.
  ///
  /// - Parameter url: where, `postgres://…`, or what libpq takes instead; what it does not say
  ///   comes from the variables that libpq knows (`PGPASSWORD`, `PGPASSFILE`, …).
  init(_ url: String) { self.url = url }

  /// A row of an answer: a text for each column, nil for NULL.
  typealias Row = [String?]

  /// Asks, and as long as there is no connection, asks again.
  ///
  /// A statement whose answer was lost may be carried out twice.
  ///
  /// - Throws: ``DatabaseError`` if the statement is refused, or there is no connection for this
  ///   long; `CancellationError`.
  @discardableResult
  func persistently(
    _ statement: String, _ values: [String?] = [], for patience: Duration = .seconds(120)
  ) async throws -> [Row] {
    let end = ContinuousClock.now + patience
    var pause = Duration.milliseconds(100)
    while true {
      let failure: DatabaseError
      do throws(DatabaseError) {
        return try ask(statement, values)
      } catch {
        failure = error
      }
      guard failure.kind == .connection, ContinuousClock.now + pause < end else { throw failure }
      try await Task.sleep(for: pause)
      pause = min(pause * 2, .seconds(5))
    }
  }

  /// Asks once.
  ///
  /// - Parameters:
  ///   - statement: one statement of SQL.
  ///   - values: what stands for `$1`, `$2` and so on, as text; nil for NULL.
  /// - Throws: ``DatabaseError``.
  @discardableResult
  func ask(_ statement: String, _ values: [String?] = []) throws(DatabaseError) -> [Row] {
    let library = try PostgresLibrary.shared.get()
    let connection = try open(library)
    let texts = unsafe values.map { value in unsafe value.flatMap { unsafe strdup($0) } }
    defer { unsafe texts.forEach { text in unsafe free(text) } }
    let pointers = unsafe texts.map { text in unsafe text.map { unsafe UnsafePointer($0) } }
    let answer = unsafe pointers.withUnsafeBufferPointer { buffer in
      unsafe library.execute(
        connection.pointer, statement, CInt(values.count), nil, buffer.baseAddress, nil, nil, 0)
    }
    defer { unsafe library.clear(answer) }
    guard PostgresLibrary.good.contains(unsafe library.resultStatus(answer)) else {
      throw unsafe failure(library, connection, answer)
    }
    return unsafe Self.rows(library, answer)
  }

  private static func rows(_ library: PostgresLibrary, _ answer: OpaquePointer?) -> [Row] {
    let columns = unsafe library.columnCount(answer)
    let rows = unsafe library.rowCount(answer)
    return (0..<rows).map { row in
      (0..<columns).map { column in
        guard unsafe library.isNull(answer, row, column) == 0,
          let text = unsafe library.value(answer, row, column)
        else { return nil }
        return unsafe String(cString: text)
      }
    }
  }

  private func open(_ library: PostgresLibrary) throws(DatabaseError) -> OpenConnection {
    if let connection, connection.isOpen { return connection }
    connection = nil
    let opened = OpenConnection(url, library)
    guard opened.isOpen else {
      throw DatabaseError(.connection, "the database is not to be had: \(opened.message)")
    }
    connection = opened
    // What is there already is no news; libpq would write it to standard error.
    try ask("SET client_min_messages TO warning")
    return opened
  }

  private func failure(
    _ library: PostgresLibrary, _ connection: OpenConnection, _ answer: OpaquePointer?
  ) -> DatabaseError {
    let state = unsafe firstLine(library.errorField(answer, PostgresLibrary.state))
    let message = unsafe firstLine(library.errorField(answer, PostgresLibrary.message))
    // 08: connection exceptions. 57P: it is shut down, or not up yet. 53: it lacks something now.
    // 40: two statements were in each other's way.
    let mayPass = ["08", "57P", "53", "40"].contains(where: state.hasPrefix)
    guard connection.isOpen, !mayPass else {
      if !state.hasPrefix("40") { self.connection = nil }
      let why = message.isEmpty ? connection.message : message
      return DatabaseError(.connection, "the database is not to be had: \(why)")
    }
    // 42P01, 3F000: there is no such table, no such schema.
    if state == "42P01" || state == "3F000" {
      return DatabaseError(.noFleet, "there is no fleet in this database")
    }
    return DatabaseError(.statement, "the database refuses: \(message) (\(state))")
  }
}

/// A connection that was opened, whether that went well or not; closed with the object.
@safe
private final class OpenConnection: @unchecked Sendable {
  private let library: PostgresLibrary
  let pointer: OpaquePointer?

  init(_ url: String, _ library: PostgresLibrary) {
    self.library = library
    unsafe pointer = library.connect(url)
  }

  deinit { unsafe library.finish(pointer) }

  /// Whether statements can be sent.
  var isOpen: Bool { unsafe library.status(pointer) == PostgresLibrary.connectionIsOpen }

  /// What went wrong with it last.
  var message: String { unsafe firstLine(library.errorMessage(pointer)) }
}

/// The first line of a text of the library.
private func firstLine(_ pointer: UnsafeMutablePointer<CChar>?) -> String {
  let text = unsafe pointer.map { unsafe String(cString: $0) } ?? ""
  return text.split(separator: "\n").first.map(String.init) ?? ""
}

extension Array where Element == String {
  /// An array of texts, as PostgreSQL writes it.
  var asArray: String {
    let items = map { text in
      "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
    return "{" + items.joined(separator: ",") + "}"
  }
}
