internal import CSQLite

/// One connection to a database file: `sqlite3`.
///
/// Foreign keys are not enforced, as is SQLite's default.
@safe package final class Database {
  private let handle: OpaquePointer

  /// Opens a database, and creates the file if it does not exist.
  package init(path: String) throws(DatabaseError) {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    let code = unsafe sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened = unsafe opened else {
      let message = unsafe String(cString: sqlite3_errstr(code))
      unsafe sqlite3_close_v2(opened)
      throw DatabaseError(code: code, message)
    }
    unsafe handle = unsafe opened
  }

  deinit { unsafe sqlite3_close_v2(handle) }

  /// Compiles a statement.
  package func prepare(_ sql: String) throws(DatabaseError) -> Statement {
    var prepared: OpaquePointer?
    try check(unsafe sqlite3_prepare_v2(handle, sql, -1, &prepared, nil))
    guard let statement = unsafe prepared else {
      throw DatabaseError(code: SQLITE_MISUSE, "a statement is empty")
    }
    return unsafe Statement(self, statement)
  }

  /// Runs one statement to its end.
  package func execute(
    _ sql: String, _ parameters: [any DatabaseBindable] = []
  ) throws(DatabaseError) {
    try prepare(sql).execute(parameters)
  }

  /// Runs several statements, which take no parameters.
  package func run(script: String) throws(DatabaseError) {
    try check(unsafe sqlite3_exec(handle, script, nil, nil, nil))
  }

  /// The first row of what a statement finds; nil if there is none.
  package func first(
    _ sql: String, _ parameters: [any DatabaseBindable] = []
  ) throws(DatabaseError) -> [DatabaseValue]? {
    try prepare(sql).first(parameters)
  }

  /// The number that a statement finds first; nil if it finds none.
  package func number(
    _ sql: String, _ parameters: [any DatabaseBindable] = []
  ) throws(DatabaseError) -> Int64? {
    try first(sql, parameters)?.first?.integer
  }

  /// The `rowid` of the last row that was inserted.
  package var lastInsertedRow: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

  /// Runs a transaction that may write: what it did counts if it returns, and nothing if it throws.
  package func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try execute("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // Some errors end the transaction by themselves.
      if unsafe sqlite3_get_autocommit(handle) == 0 {
        do {
          try execute("ROLLBACK")
        } catch {
          // The first error says why. The connection is of no more use, and the file rolls back.
        }
      }
      throw error
    }
  }

  /// Throws what a result code other than `SQLITE_OK` says.
  func check(_ code: Int32) throws(DatabaseError) {
    guard code != SQLITE_OK else { return }
    throw DatabaseError(code: code, unsafe String(cString: sqlite3_errmsg(handle)))
  }
}
