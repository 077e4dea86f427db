import Foundation
import HTTP
import TestSupport

@testable import Fleet
@testable import Postgres

/// A database of PostgreSQL that is empty, for one test.
///
/// `CARPACK_TEST_DATABASE` names a server where databases may be made.
final class TestDatabase: Sendable {
  let url: String
  private let server: Database
  private let name: String
  private let seat: Places.Seat

  /// How many tests have a database at a time: a server takes a hundred connections.
  private static let places = Places(3)

  static let server = ProcessInfo.processInfo.environment["CARPACK_TEST_DATABASE"]
  static let absence = "CARPACK_TEST_DATABASE names no PostgreSQL in which databases may be made"

  init() async throws {
    guard let server = Self.server, let end = server.lastIndex(of: "/") else {
      throw CocoaError(.fileNoSuchFile)
    }
    seat = try await Self.places.take()
    name = "carpack_test_\(UInt32.random(in: 0 ... .max))"
    self.server = Database(server)
    try await self.server.persistently("CREATE DATABASE \(name)", each: Self.patience)
    url = "\(server[..<end])/\(name)"
  }

  /// Removes it, and with it whatever is connected.
  func remove() async throws {
    defer { seat.giveBack() }
    try await server.persistently(
      "DROP DATABASE IF EXISTS \(name) WITH (FORCE)", each: Self.patience)
  }

  /// How long the server may take for a database, which is many files.
  private static let patience: Duration = .seconds(100)

  /// Ends all connections to it, as a server does that is started again.
  func cutOff() async throws {
    try await server.ask(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name])
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
