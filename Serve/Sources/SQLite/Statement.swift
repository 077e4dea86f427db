internal import CSQLite

/// A prepared statement: `sqlite3_stmt`.
///
/// It keeps its database open.
@safe package final class Statement {
  private let database: Database
  private let handle: OpaquePointer

  init(_ database: Database, _ handle: OpaquePointer) {
    self.database = database
    unsafe self.handle = unsafe handle
  }

  deinit { unsafe sqlite3_finalize(handle) }

  /// Runs it to its end with these parameters.
  package func execute(_ parameters: [any DatabaseBindable] = []) throws(DatabaseError) {
    try bind(parameters)
    while try step() {}
  }

  /// The first row with these parameters; nil if there is none.
  package func first(
    _ parameters: [any DatabaseBindable] = []
  ) throws(DatabaseError) -> [DatabaseValue]? {
    try bind(parameters)
    guard try step() else { return nil }
    let row = row
    unsafe sqlite3_reset(handle)
    return row
  }

  /// All rows with these parameters.
  package func all(
    _ parameters: [any DatabaseBindable] = []
  ) throws(DatabaseError) -> [[DatabaseValue]] {
    try bind(parameters)
    var rows: [[DatabaseValue]] = []
    while try step() { rows.append(row) }
    return rows
  }

  /// Begins again, with these parameters.
  private func bind(_ parameters: [any DatabaseBindable]) throws(DatabaseError) {
    unsafe sqlite3_reset(handle)
    precondition(
      parameters.count == Int(unsafe sqlite3_bind_parameter_count(handle)),
      "a parameter of a statement has no value")
    for (index, parameter) in zip(Int32(1)..., parameters) {
      try database.check(bind(parameter.databaseValue, at: index))
    }
  }

  private func bind(_ value: DatabaseValue, at index: Int32) -> Int32 {
    switch value {
    case .null: return unsafe sqlite3_bind_null(handle, index)
    case .integer(let number): return unsafe sqlite3_bind_int64(handle, index, number)
    case .text(var text):
      // With its length, as it may hold a NUL.
      return text.withUTF8 { bytes in
        unsafe carpack_bind_text(handle, index, bytes.baseAddress, UInt64(bytes.count))
      }
    case .bytes(let bytes):
      return unsafe bytes.withUnsafeBytes { bytes in
        unsafe carpack_bind_blob(handle, index, bytes.baseAddress, UInt64(bytes.count))
      }
    }
  }

  /// Goes to the next row; false after the last one, where the statement is ready to begin anew.
  private func step() throws(DatabaseError) -> Bool {
    let code = unsafe sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    // The message is that of the step.
    defer { unsafe sqlite3_reset(handle) }
    if code != SQLITE_DONE { try database.check(code) }
    return false
  }

  private var row: [DatabaseValue] {
    (0..<(unsafe sqlite3_column_count(handle))).map(value)
  }

  private func value(_ column: Int32) -> DatabaseValue {
    func bytes() -> [UInt8] {
      // A value of no bytes has no address.
      guard let start = unsafe sqlite3_column_blob(handle, column) else { return [] }
      let count = Int(unsafe sqlite3_column_bytes(handle, column))
      return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }
    return switch unsafe sqlite3_column_type(handle, column) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER: .integer(unsafe sqlite3_column_int64(handle, column))
    case SQLITE_BLOB: .bytes(bytes())
    default: .text(String(decoding: bytes(), as: UTF8.self))
    }
  }
}

extension DatabaseValue {
  /// The number, if it is one.
  package var integer: Int64? {
    if case .integer(let number) = self { number } else { nil }
  }

  /// The text, if it is one.
  package var text: String? {
    if case .text(let text) = self { text } else { nil }
  }
}
