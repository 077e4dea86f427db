import Archive
import Files
import HTTP
import ObjectStore
import Remote
import Synchronization

/// Archives that lie in buckets, or on web servers: listed now and then, and read part by part.
final class FarArchives: Sendable {
  /// How long a list counts, in seconds: stores count requests.
  private static let interval: Duration = .seconds(60)

  private let store: StoreOptions
  private let network: NetworkOptions
  private let lists = Mutex<[String: (at: ContinuousClock.Instant, found: [Found])]>([:])

  /// An archive, and what tells its content from another.
  typealias Found = (address: String, version: String)

  init(_ store: StoreOptions, _ network: NetworkOptions) {
    (self.store, self.network) = (store, network)
  }

  /// The archives at an address, as they were when they were listed last, and whether that was now.
  ///
  /// - Throws: `FetchFailure` if the store does not list them; what was known before still counts.
  func list(_ address: String) throws -> (found: [Found], isNew: Bool) {
    if let known = lists.withLock({ $0[address] }), known.at.duration(to: .now) < Self.interval {
      return (known.found, false)
    }
    do {
      let found = try RemoteArchive.versions(in: address, store, network: network)
      lists.withLock { $0[address] = (.now, found) }
      return (found, true)
    } catch {
      lists.withLock { $0[address] = (.now, $0[address]?.found ?? []) }
      throw error
    }
  }

  /// Opens an archive: its end is fetched, and the rest when it is read.
  ///
  /// - Throws: `FetchFailure`; `BackupError` if there is no room for it.
  func open(_ address: String) throws -> MappedFile {
    try InputFile(remote: address, store, network: network).mapped
  }
}
