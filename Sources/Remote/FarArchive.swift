package import Archive
internal import Files
package import ObjectStore
package import SystemPackage
package import XRPC

/// An archive that lies elsewhere: in a bucket, or on a web server.
package enum FarArchive {
  /// Whether a name is the address of something that lies elsewhere.
  package static func isAddress(_ name: String) -> Bool {
    [BucketAddress.scheme, "https://", "http://"].contains { name.hasPrefix($0) }
  }

  /// What a message calls it: the address, without a query, which may be secret.
  package static func shown(_ name: String) -> String {
    isAddress(name) ? String(name.prefix { $0 != "?" }) : name
  }

  /// The folder for what is kept between runs and can be done without.
  ///
  /// - Parameter environment: the environment's variables by their names.
  package static func cacheFolder(_ environment: (String) -> String?) -> FilePath {
    if let cache = environment("XDG_CACHE_HOME") { return FilePath(cache).appending("carpack") }
    if let home = environment("HOME") { return FilePath(home).appending(".cache/carpack") }
    return TemporaryFile.defaultFolder.appending("carpack-cache")
  }

  /// Opens it for reading; its end is fetched, and the rest when it is read.
  ///
  /// - Parameters:
  ///   - address: `s3://bucket/key`, or a URL of `https`, or of `http` on this machine or in a
  ///     private network.
  ///   - store: How stores are asked.
  ///   - network: What the user set about the network.
  /// - Throws: `FetchFailure` if it is not there, or cannot be read; ``BackupError`` if there is no
  ///   room for it.
  /// - Returns: The file.
  package static func open(_ address: String, _ store: StoreOptions, network: NetworkOptions) throws
    -> MappedFile
  {
    do {
      let server = try server(address, store, network)
      return try MappedFile(TransferThread.shared.wait { try await FarObject.open(server) })
    } catch let error as StoreError {
      throw FetchFailure(error)
    } catch let error as TransportError {
      throw FetchFailure(error)
    }
  }

  static func server(
    _ address: String, _ store: StoreOptions, _ network: NetworkOptions
  ) throws -> any RangeServer {
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
    return WebFile(network: try Network(network), url: try HTTPURL(address))
  }
}
