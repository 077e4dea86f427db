import Foundation
import StandIn
import Testing

/// A database that can fall silent.
enum SilentDatabase {
  /// Does something with an empty database and a way to it through a relay.
  static func withRelay(
    _ body: (TestDatabase, _ url: String, LoopbackRelay) async throws -> Void
  ) async throws {
    try await TestDatabase.with { database in
      var address = try #require(URLComponents(string: database.url))
      let relay = try LoopbackRelay(to: UInt16(address.port ?? 5432))
      defer { relay.stop() }
      (address.host, address.port) = ("127.0.0.1", Int(relay.port))
      try await body(database, try #require(address.string), relay)
    }
  }
}
