/// What database is to be written: the argument of `carpack-serve sqlite`, as JSON.
public struct SQLiteOptions: Decodable, Sendable {
  /// The archive.
  public let archive: String
  /// The database; one that is there is brought up to date.
  public let database: String
  /// Whether archives may hold far more than their size suggests.
  public let allowsLarge: Bool
  /// Whether nothing but results and what is wrong is said.
  public let isQuiet: Bool
  /// Whether results are JSON.
  public let isJSON: Bool
}
