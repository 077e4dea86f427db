internal import Dispatch
internal import LibC

/// A connection of libpq, which one thread uses at a time; closed with the object.
///
/// Connecting blocks, within limits; statements do so for as long as the caller says.
@safe
final class PostgresConnection: @unchecked Sendable {
  private let library: PostgresLibrary
  private let pointer: OpaquePointer?
  /// Whether another statement can be sent: the connection is open, and nothing is running.
  private(set) var isUsable = true

  /// How often to look whether the caller still waits, in milliseconds.
  private static let slice: CInt = 20

  /// Limits that the system keeps: how long sent bytes may stay unconfirmed, in milliseconds, and
  /// after how many seconds of silence it asks whether the server is there, how often, and after
  /// how many times it gives the connection up.
  private static let defaults = [
    ("tcp_user_timeout", "8000"), ("keepalives_idle", "5"), ("keepalives_interval", "2"),
    ("keepalives_count", "2"),
  ]

  /// Connects.
  ///
  /// The C function is `PQconnectdbParams`. It tries one host, and one address, after the other,
  /// and keeps the limit with each of them, which the functions that do not block leave to the
  /// caller. The resolver of names knows its own limits.
  ///
  /// - Parameters:
  ///   - url: where; what it says counts before ``defaults`` and the limit.
  ///   - limit: how long an address may take, in whole seconds.
  /// - Throws: ``DatabaseError``.
  init(_ url: String, connectingWithin limit: Duration) throws(DatabaseError) {
    library = try PostgresLibrary.shared.get()
    // The URL is the last, because what comes later counts.
    var pairs = Self.defaults + [("dbname", url)]
    // A value here would override the variable.
    if unsafe getenv("PGCONNECT_TIMEOUT") == nil {
      pairs.insert(("connect_timeout", "\(limit.components.seconds)"), at: 0)
    }
    unsafe pointer = withCTexts(pairs.map(\.0)) { [library] names in
      unsafe withCTexts(pairs.map(\.1)) { values in unsafe library.connect(names, values, 1) }
    }
    guard unsafe library.status(pointer) == PostgresLibrary.connectionIsOpen,
      unsafe library.setNonBlocking(pointer, 1) == 0
    else { throw lost(message) }
  }

  deinit { unsafe library.finish(pointer) }

  /// Sends a statement, and waits for the answer.
  ///
  /// - Parameters:
  ///   - statement: one statement of SQL.
  ///   - values: the values of `$1`, `$2` and so on, as text; nil for NULL.
  ///   - mayWait: whether to wait on.
  /// - Throws: ``DatabaseError``.
  func ask(_ statement: String, _ values: [String?], while mayWait: () -> Bool)
    throws(DatabaseError) -> [Database.Row]
  {
    // Until the answer has come to its end.
    isUsable = false
    let isSent = unsafe withCTexts(values) { texts in
      unsafe library.sendQuery(
        pointer, statement, CInt(values.count), nil, texts, nil, nil, 0) == 1
    }
    guard isSent else { throw lost(message) }
    // One statement has one answer, and then none.
    var answer: OpaquePointer?
    defer { unsafe library.clear(answer) }
    while let next = unsafe try next(while: mayWait) {
      unsafe library.clear(answer)
      unsafe answer = next
    }
    guard PostgresLibrary.good.contains(unsafe library.resultStatus(answer)) else {
      throw unsafe failure(answer)
    }
    isUsable = true
    return unsafe rows(answer)
  }

  /// The next answer; nil if there is no more.
  private func next(while mayWait: () -> Bool) throws(DatabaseError) -> OpaquePointer? {
    while true {
      let unsent = unsafe library.flush(pointer)
      guard unsent >= 0 else { throw lost(message) }
      if unsent == 0, unsafe library.isBusy(pointer) == 0 { return unsafe library.result(pointer) }
      guard mayWait() else {
        cancel()
        throw .noAnswer
      }
      let events = CShort(unsent == 0 ? POLLIN : POLLIN | POLLOUT)
      var place = pollfd(fd: unsafe library.socket(pointer), events: events, revents: 0)
      // Whatever ends the wait, the next attempt shows what is there.
      guard unsafe poll(&place, 1, Self.slice) > 0 else { continue }
      guard unsafe library.consumeInput(pointer) == 1 else { throw lost(message) }
    }
  }

  /// Asks the server to stop the abandoned statement.
  ///
  /// `PQcancel` makes a connection of its own and blocks, so it runs on a detached thread.
  private func cancel() {
    let data = unsafe UInt(bitPattern: library.cancelData(pointer))
    DispatchQueue(label: "cancel").async { [library] in
      let data = unsafe OpaquePointer(bitPattern: data)
      _ = unsafe library.cancel(data, nil, 0)
      unsafe library.freeCancelData(data)
    }
  }

  private func rows(_ answer: OpaquePointer?) -> [Database.Row] {
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

  private func failure(_ answer: OpaquePointer?) -> DatabaseError {
    let state = unsafe firstLine(library.errorField(answer, PostgresLibrary.state))
    let message = unsafe firstLine(library.errorField(answer, PostgresLibrary.message))
    let isOpen = unsafe library.status(pointer) == PostgresLibrary.connectionIsOpen
    // 08: connection exceptions. 57P: it is shut down, or not up yet. 53: it lacks something now.
    // 25006: it is a standby, or was made one; another host of the URL may not be. 40: two
    // statements were in each other's way.
    let mayPass = ["08", "57P", "53", "25006", "40"].contains(where: state.hasPrefix)
    isUsable = isOpen && (!mayPass || state.hasPrefix("40"))
    guard isOpen, !mayPass else { return lost(message.isEmpty ? self.message : message) }
    // 42P01, 42703, 3F000: there is no such table, column, schema.
    if ["42P01", "42703", "3F000"].contains(state) {
      let what = "the database does not have the fleet's tables, or has older ones"
      return DatabaseError(.noTables, "\(what): \(message)")
    }
    // 57014: it took longer than it may; what is asked again may be faster.
    if state == "57014" { return lost(message) }
    return DatabaseError(.statement, "the database refused: \(message) (\(state))")
  }

  private func lost(_ why: String) -> DatabaseError {
    DatabaseError(.connection, "cannot reach the database: \(why)")
  }

  /// The last error of the connection.
  private var message: String { unsafe firstLine(library.errorMessage(pointer)) }
}

/// The first line of a text of the library.
private func firstLine(_ pointer: UnsafeMutablePointer<CChar>?) -> String {
  let text = unsafe pointer.map { unsafe String(cString: $0) } ?? ""
  return text.split(separator: "\n").first.map(String.init) ?? ""
}

/// Lends texts as C has them, in an array that ends in NULL.
private func withCTexts<Result>(
  _ texts: [String?], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
) -> Result {
  let copies = unsafe (texts + [nil]).map { text in unsafe text.flatMap { unsafe strdup($0) } }
  defer { unsafe copies.forEach { copy in unsafe free(copy) } }
  let pointers = unsafe copies.map { copy in unsafe copy.map { unsafe UnsafePointer($0) } }
  return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
}
