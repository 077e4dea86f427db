import Foundation
import TestSupport

@testable import Fleet
@testable import Postgres

/// A database of PostgreSQL that is empty, for one test.
///
/// `CARPACK_TEST_DATABASE` names a server where databases may be made. A server takes a hundred
/// connections: suites that have databases run their tests one after the other.
final class TestDatabase: Sendable {
  let url: String
  private let name: String

  static let server = ProcessInfo.processInfo.environment["CARPACK_TEST_DATABASE"]
  private static let connection = Database(server ?? "")
  static let absence = "CARPACK_TEST_DATABASE names no PostgreSQL in which databases may be made"

  init() async throws {
    guard let server = Self.server, let end = server.lastIndex(of: "/") else {
      throw CocoaError(.fileNoSuchFile)
    }
    name = "carpack_test_\(UInt32.random(in: 0 ... .max))"
    try await Self.connection.persistently(
      "CREATE DATABASE \(name)", for: Self.patience, each: Self.patience)
    url = "\(server[..<end])/\(name)"
  }

  /// Removes it, and with it whatever is connected.
  func remove() async throws {
    try await Self.connection.persistently(
      "DROP DATABASE IF EXISTS \(name) WITH (FORCE)", for: Self.patience, each: Self.patience)
  }

  /// How long the server may take for a database, which is many files.
  private static let patience: Duration = .seconds(600)

  /// Ends all connections to it, as a server does that is started again.
  func cutOff() async throws {
    try await Self.connection.persistently(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name])
  }

  /// Has connections from now on refuse to write, as those to a standby do, or not.
  func refuseWrites(_ isRefusing: Bool) async throws {
    try await Self.connection.persistently(
      "ALTER DATABASE \(name) SET default_transaction_read_only = \(isRefusing)")
    try await cutOff()
  }

  /// Does something with an empty database.
  static func with<Value>(_ body: (TestDatabase) async throws -> Value) async throws -> Value {
    let database = try await TestDatabase()
    let result: Result<Value, any Error>
    do {
      result = .success(try await body(database))
    } catch {
      result = .failure(error)
    }
    try await database.remove()
    return try result.get()
  }
}
