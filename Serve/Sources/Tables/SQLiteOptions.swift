/// The options of an export to SQLite: the argument of `carpack-serve sqlite`, as JSON.
package struct SQLiteOptions: Decodable, Sendable {
  /// The archive.
  package let archive: String
  /// The database; an existing one is brought up to date.
  package let database: String
  /// Whether archives may hold far more than their size suggests.
  package let allowsLarge: Bool
  /// Whether only results and problems are printed.
  package let isQuiet: Bool
  /// Whether results are JSON.
  package let isJSON: Bool
}
