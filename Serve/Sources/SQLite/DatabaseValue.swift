/// A value that a statement takes or a row has.
package enum DatabaseValue: Equatable, Sendable {
  case null
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
}

/// What can be bound to a parameter of a statement.
package protocol DatabaseBindable {
  var databaseValue: DatabaseValue { get }
}

extension DatabaseValue: DatabaseBindable {
  package var databaseValue: DatabaseValue { self }
}

extension String: DatabaseBindable {
  package var databaseValue: DatabaseValue { .text(self) }
}

extension Int: DatabaseBindable {
  package var databaseValue: DatabaseValue { .integer(Int64(self)) }
}

extension Int64: DatabaseBindable {
  package var databaseValue: DatabaseValue { .integer(self) }
}

extension Bool: DatabaseBindable {
  package var databaseValue: DatabaseValue { .integer(self ? 1 : 0) }
}

extension Array: DatabaseBindable where Element == UInt8 {
  package var databaseValue: DatabaseValue { .bytes(self) }
}

extension Optional: DatabaseBindable where Wrapped: DatabaseBindable {
  package var databaseValue: DatabaseValue { self?.databaseValue ?? .null }
}
