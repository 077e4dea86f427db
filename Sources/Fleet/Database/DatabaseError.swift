/// Why the database did not do what it was asked to.
package struct DatabaseError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  package enum Kind: Sendable {
    /// There is no client library.
    case library
    /// There is no connection, or it broke.
    case connection
    /// The database refuses the statement.
    case statement
    /// There is no fleet in it, or one of another version.
    case noFleet
  }

  /// What kind of failure it is.
  package let kind: Kind
  /// What happened, in words.
  package let description: String

  init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }

  /// The deadline has passed.
  static let noAnswer = DatabaseError(
    .connection, "cannot reach the database: it does not answer")
}
