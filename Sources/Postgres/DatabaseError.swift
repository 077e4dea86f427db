/// Why the database did not do what it was asked to.
package struct DatabaseError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  package enum Kind: Sendable {
    /// There is no client library.
    case library
    /// There is no connection, or it broke.
    case connection
    /// The database refused the statement.
    case statement
    /// The fleet's tables are missing, or have another version.
    case noTables
  }

  /// What kind of failure it is.
  package let kind: Kind
  /// What happened, in words.
  package let description: String

  /// An error.
  package init(_ kind: Kind, _ description: String) {
    (self.kind, self.description) = (kind, description)
  }

  /// The deadline has passed.
  package static let noAnswer = DatabaseError(
    .connection, "cannot reach the database: it does not answer")
}
