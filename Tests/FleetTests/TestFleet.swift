import ATProtocol
import ObjectStore
import Postgres
import Testing

@testable import Fleet

/// A fleet for one test.
enum TestFleet {
  static func dids(_ count: Int) throws -> [DID] {
    try (0..<count).map { try DID("did:web:account-\($0).example.com") }
  }

  /// Does something with a fleet of this many accounts, and workers `v` and `w`.
  static func with(
    _ count: Int, every: Int = 86_400, onChange: Bool = false,
    _ body: (FleetDatabase, TestDatabase) async throws -> Void
  ) async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      var settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      (settings.every, settings.onChange) = (every, onChange)
      try await fleet.initialize(settings)
      #expect(try await fleet.settings() == settings)
      #expect(try await fleet.add(Self.dids(count)) == count)
      for worker in ["v", "w"] { try await fleet.begin(worker, worker, seconds: 3600) }
      try await body(fleet, database)
    }
  }
}

extension FleetDatabase {
  /// Claims the only account that is due.
  func claimed(_ holder: String = "w") async throws -> FleetDatabase.Lease {
    try #require(try await claim(1, holder).first)
  }

  /// Gives accounts to hosts, in their order, by the number of the host of each.
  func place(_ hosts: [Int]) async throws {
    for (index, host) in hosts.enumerated() {
      try await database.persistently(
        """
        WITH h AS (INSERT INTO carpack.host (host) VALUES ($2) ON CONFLICT DO NOTHING)
        UPDATE carpack.account SET host = $2,
          due = now() - interval '1 hour' + make_interval(secs => $3::integer) WHERE did = $1
        """, ["did:web:account-\(index).example.com", "https://host-\(host)", "\(index)"])
    }
  }

  /// A number by a query of its name.
  func number(_ expression: String) async throws -> Double {
    let row = try await database.persistently("SELECT \(expression)").first
    return try #require(row?.first.flatMap { $0.flatMap { Double($0) } })
  }
}
