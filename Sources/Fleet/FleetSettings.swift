package import ObjectStore
internal import Postgres

/// The settings of all workers of a fleet, as they are kept in the database.
package struct FleetSettings: Equatable, Sendable {
  /// Where archives go: what their addresses begin with.
  package var store: BucketAddress
  /// The URL of the store; nil for Amazon's.
  package var endpoint: String?
  /// The store's region; nil for the one in each worker's environment.
  package var region: String?
  /// Whether the bucket is named in the path; nil for what fits the store.
  package var namesBucketInPath: Bool?
  /// How many seconds lie between two backups of an account, unless it has its own setting.
  package var every = 86_400
  /// Whether a new revision makes an account due, unless it has its own setting.
  package var onChange = false
  /// How many requests a second one host gets from all workers together.
  package var requestsPerSecond = 10.0
  /// Whether the archive of an account that was deleted is moved aside after this many seconds, and
  /// deleted after as many more; nil if it is kept.
  package var followsDeletionsAfter: Int?
  /// The origins of relays and mirrors that are asked whether an account was deleted, besides the
  /// firehoses.
  package var witnesses: [String] = []

  /// Settings with this store.
  package init(store: BucketAddress) { self.store = store }

  init(_ values: [String: String]) throws {
    guard values["version"] == FleetTables.version, let store = values["store"] else {
      throw DatabaseError(
        .noTables,
        "the tables of the fleet in this database have version \(values["version"] ?? "0")")
    }
    self.init(store: try BucketAddress(store))
    endpoint = values["endpoint"]
    region = values["region"]
    namesBucketInPath = values["path_style"].map { $0 == "true" }
    every = values["every"].flatMap { Int($0) } ?? every
    onChange = values["on_change"] == "true"
    requestsPerSecond = values["rate"].flatMap { Double($0) } ?? requestsPerSecond
    followsDeletionsAfter = values["follows_deletions_after"].flatMap { Int($0) }
    witnesses = values["witnesses"]?.split(separator: " ").map(String.init) ?? []
  }

  var values: [String: String] {
    var values = [
      "version": FleetTables.version, "store": "\(store)", "every": "\(every)",
      "on_change": "\(onChange)", "rate": "\(requestsPerSecond)",
    ]
    values["endpoint"] = endpoint
    values["region"] = region
    values["path_style"] = namesBucketInPath.map { "\($0)" }
    values["follows_deletions_after"] = followsDeletionsAfter.map { "\($0)" }
    values["witnesses"] = witnesses.isEmpty ? nil : witnesses.joined(separator: " ")
    return values
  }
}
