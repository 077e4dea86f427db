import HTTP
import ObjectStore
import Remote

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The options of a server: the argument of `carpack-serve serve`, as JSON.
///
/// `carpack serve` and `carpack view` make it of their options, which are explained there.
package struct ServerOptions: Decodable, Sendable {
  /// What is offered.
  package enum Offer: String, Decodable, Sendable {
    /// The page and the archives, under a secret path.
    case page
    /// That, and a personal data server.
    case everything
  }

  /// What is offered.
  package var offer: Offer
  /// Archives, and folders to look for archives in.
  package var paths: [String]
  /// Repositories as CARs, which the page shows beside the archives.
  package var cars: [String]
  /// The address to bind to.
  package var host: String
  /// The port; 0 for any that is free.
  package var port: Int
  /// Names by which the server may be addressed, in addition to its address; with `https://` in
  /// front, also how it is reached.
  package var hostnames: [String]
  /// The origins of the websites that may read `/xrpc/`, `*` for all; with none given, all may
  /// unless a served archive is sealed.
  package var allowedOrigins: [String]
  /// Which snapshot of each account is served; nil for the newest.
  package var snapshot: String?
  /// Whether DID documents name this server as the account's.
  package var impersonates: Bool
  /// The file of the access log, `-` for standard error; nil for none.
  package var log: String?
  /// Whether counters are given at `/metrics`.
  package var hasMetrics: Bool
  /// Where the store is that `s3://` means, and how it is asked; what is secret comes from the
  /// environment and from Amazon's files.
  package var store: Store
  /// The file of certificates that servers are checked against; nil for the system's.
  package var certificates: String?
  /// Whether archives may hold far more than their size suggests.
  package var allowsLarge: Bool
  /// Whether the browser is opened.
  package var opensBrowser: Bool
  /// Whether only warnings and errors are printed.
  package var isQuiet: Bool
  /// Whether the server's start is reported as JSON, on standard output.
  package var isJSON: Bool
  /// Name and version of the command.
  package var tool: String
}

extension ServerOptions {
  /// How an object store is asked.
  package struct Store: Decodable, Sendable {
    var endpoint, region, profile: String?
    var isUnsigned: Bool?
    var namesBucketInPath: Bool?
  }

  /// The archives in buckets or on web servers, if there are any.
  var farArchives: FarArchives? {
    guard paths.contains(where: RemoteArchive.isAddress) else { return nil }
    let environment = ProcessInfo.processInfo.environment
    var store = StoreOptions { environment[$0].flatMap { $0.isEmpty ? nil : $0 } }
    (store.endpoint, store.region) = (self.store.endpoint, self.store.region)
    store.profile = self.store.profile
    store.isUnsigned = self.store.isUnsigned ?? false
    store.namesBucketInPath = self.store.namesBucketInPath
    var network = NetworkOptions(userAgent: tool.replacing(" ", with: "/"))
    // Its clients give up long before a store has recovered, and ask again.
    network.badMinute = 0
    network.caFile = certificates
    return FarArchives(store, network)
  }

  private enum CodingKeys: String, CodingKey {
    case offer, paths, cars, host, port, hostnames, allowedOrigins, snapshot, impersonates, log,
      hasMetrics, allowsLarge
    case opensBrowser, isQuiet, isJSON, tool, store, certificates
  }

  /// Reads the options; those that are missing have their usual values.
  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    func flag(_ key: CodingKeys) throws -> Bool {
      try values.decodeIfPresent(Bool.self, forKey: key) ?? false
    }
    offer = try values.decode(Offer.self, forKey: .offer)
    paths = try values.decode([String].self, forKey: .paths)
    cars = try values.decodeIfPresent([String].self, forKey: .cars) ?? []
    host = try values.decode(String.self, forKey: .host)
    port = try values.decode(Int.self, forKey: .port)
    hostnames = try values.decodeIfPresent([String].self, forKey: .hostnames) ?? []
    allowedOrigins = try values.decodeIfPresent([String].self, forKey: .allowedOrigins) ?? []
    snapshot = try values.decodeIfPresent(String.self, forKey: .snapshot)
    impersonates = try flag(.impersonates)
    log = try values.decodeIfPresent(String.self, forKey: .log)
    hasMetrics = try flag(.hasMetrics)
    allowsLarge = try flag(.allowsLarge)
    opensBrowser = try flag(.opensBrowser)
    isQuiet = try flag(.isQuiet)
    isJSON = try flag(.isJSON)
    tool = try values.decode(String.self, forKey: .tool)
    store = try values.decodeIfPresent(Store.self, forKey: .store) ?? Store()
    certificates = try values.decodeIfPresent(String.self, forKey: .certificates)
  }
}
