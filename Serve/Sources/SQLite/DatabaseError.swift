internal import CSQLite

/// Why SQLite refused something.
package struct DatabaseError: Error, Equatable, CustomStringConvertible {
  /// SQLite's result code, without the extended bits.
  package let code: Int32
  /// What SQLite says.
  package let description: String

  /// Whether the file cannot be opened, or is not a database.
  package var isOfFile: Bool { code == SQLITE_CANTOPEN || code == SQLITE_NOTADB }

  init(code: Int32, _ description: String) {
    // The extended bits are the higher ones.
    self.code = code & 0xff
    self.description = description
  }
}
