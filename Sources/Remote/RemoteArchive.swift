internal import Archive
internal import Dispatch
package import Files
package import HTTP
internal import IPLD
package import ObjectStore
internal import Synchronization
package import SystemPackage

/// A remote archive: in a bucket, or on a web server.
package enum RemoteArchive {
  /// Whether a name is the address of something remote.
  package static func isAddress(_ name: String) -> Bool {
    [BucketAddress.scheme, "https://", "http://"].contains { name.hasPrefix($0) }
  }

  /// Its name in messages: the address, without a query, which may be secret.
  package static func shown(_ name: String) -> String {
    isAddress(name) ? String(name.prefix { $0 != "?" }) : name
  }

  /// The folder for what is kept between runs and may be deleted: a cache.
  ///
  /// - Parameter environment: the environment's variables by their names.
  package static func cacheFolder(_ environment: (String) -> String?) -> FilePath {
    if let cache = environment("XDG_CACHE_HOME") { return FilePath(cache).appending("carpack") }
    if let home = environment("HOME") { return FilePath(home).appending(".cache/carpack") }
    return TemporaryFile.defaultFolder.appending("carpack-cache")
  }

  /// What it is read from.
  ///
  /// - Parameter address: `s3://bucket/key`, or a URL of `https`, or of `http` on this machine or
  ///   in a private network.
  /// - Throws: `StoreError` or `TransportError` if the address cannot be used.
  static func reader(
    _ address: String, _ store: StoreOptions, _ network: NetworkOptions
  ) throws -> any RangeReader {
    guard !address.hasPrefix(BucketAddress.scheme) else {
      let place = try BucketAddress(address)
      guard !place.key.isEmpty, !place.key.hasSuffix("/") else {
        throw StoreError(.refused, "\(place) names no object")
      }
      return BucketObject(
        client: try BucketClient(place.bucket, store, network: network), key: place.key)
    }
    var network = network
    // The user has named it.
    network.plainServers.append(address)
    network.overloadSeconds = network.badMinute
    return WebFile(network: try Network(network), url: try HTTPURL(address))
  }

  // MARK: Folders

  /// Whether a name is that of a bucket, or of a prefix in it that ends in `/`.
  package static func isFolder(_ name: String) -> Bool {
    guard name.hasPrefix(BucketAddress.scheme) else { return false }
    let place = name.dropFirst(BucketAddress.scheme.count)
    return place.hasSuffix("/") || !place.contains("/")
  }

  /// The addresses of the archives under a prefix: the objects whose keys end in `.car.zst`, in the
  /// order of their keys.
  ///
  /// - Parameters:
  ///   - address: the bucket, or the prefix.
  ///   - store: how to access stores.
  ///   - network: what the user set about the network.
  /// - Throws: `FetchFailure` if the store does not list them; `CancellationError`.
  package static func archives(
    in address: String, _ store: StoreOptions, network: NetworkOptions
  ) throws -> [String] {
    try versions(in: address, store, network: network).map(\.address)
  }

  /// The same, each with what tells one content of it from another; of an address that is not a
  /// folder's the one archive, if it is there.
  ///
  /// A web server is not asked: its archives are assumed to exist and not to change.
  ///
  /// - Throws: as ``archives(in:_:network:)`` does.
  package static func versions(
    in address: String, _ store: StoreOptions, network: NetworkOptions
  ) throws -> [(address: String, version: String)] {
    guard address.hasPrefix(BucketAddress.scheme) else { return [(address, "")] }
    return try BlockingBridge.shared.wait {
      try await FetchFailure.telling {
        let place = try BucketAddress(address)
        var found: [(address: String, version: String)] = []
        try await BucketClient(place.bucket, store, network: network).listVersions(place.key) {
          for (key, version) in $0 where isFolder(address) || key == place.key {
            guard key.hasSuffix(".car.zst") || key == place.key else { continue }
            found.append(("\(BucketAddress(bucket: place.bucket, key: key))", version))
          }
        }
        return found
      }
    }
  }
}

extension InputFile {
  /// Opens a remote archive: its end is fetched, and the rest when it is read.
  ///
  /// - Parameters:
  ///   - address: its address.
  ///   - store: how to access stores.
  ///   - network: what the user set about the network.
  /// - Throws: `FetchFailure` if it is missing, or cannot be read; ``BackupError`` if there is no
  ///   room for it.
  package convenience init(remote address: String, _ store: StoreOptions, network: NetworkOptions)
    throws
  {
    let file = try BlockingBridge.shared.wait {
      try await FetchFailure.telling {
        try await RemoteObject.open(RemoteArchive.reader(address, store, network))
      }
    }
    self.init(file, named: RemoteArchive.shown(address))
  }
}

/// A queue for transfers whose callers block: reading an archive is not asynchronous, and the
/// archive may be remote.
///
/// Tasks that are waited for may not need the threads of all other tasks: those may be the ones
/// that wait.
final class BlockingBridge: TaskExecutor {
  static let shared = BlockingBridge()
  private let queue = DispatchQueue(label: "transfers")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// The interval of checks for cancelled callers, in milliseconds.
  private static let attention = 50

  /// Does something there, and waits for it until this work is stopped (`Stopping`): then
  /// it is given up, and not waited for.
  ///
  /// - Throws: what `work` throws; `CancellationError`.
  func wait<Value: Sendable>(for work: @escaping @Sendable () async throws -> Value) throws -> Value
  {
    let done = DispatchSemaphore(value: 0)
    let outcome = Mutex<Result<Value, any Error>?>(nil)
    let task = Task(executorPreference: self) {
      let result: Result<Value, any Error>
      do { result = .success(try await work()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
      done.signal()
    }
    // One that is done is not changed by that.
    defer { task.cancel() }
    while done.wait(timeout: .now() + .milliseconds(Self.attention)) == .timedOut {
      try Stopping.check()
    }
    guard let result = outcome.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}
