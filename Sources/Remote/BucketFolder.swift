internal import Archive
internal import Files
package import HTTP
package import ObjectStore

/// The objects of a bucket whose keys begin with a prefix, as a folder of archives.
package enum BucketFolder {
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
  ///   - store: how stores are asked.
  ///   - network: what the user set about the network.
  /// - Throws: `FetchFailure` if the store does not list them; `CancellationError`.
  package static func archives(
    in address: String, _ store: StoreOptions, network: NetworkOptions
  ) throws -> [String] {
    try BlockingBridge.shared.wait {
      try await FetchFailure.telling {
        let place = try BucketAddress(address)
        var found: [String] = []
        try await BucketClient(place.bucket, store, network: network).list(place.key) { page in
          found += page.filter { $0.hasSuffix(".car.zst") }.map {
            "\(BucketAddress(bucket: place.bucket, key: $0))"
          }
        }
        return found
      }
    }
  }
}
