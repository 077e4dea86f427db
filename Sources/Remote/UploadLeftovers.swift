internal import ObjectStore

/// What an interrupted writer may have left in a bucket beside an object: parts of uploads that
/// were not ended, probes, and a copy that was to take the object's place.
struct UploadLeftovers {
  let client: BucketClient
  /// The object.
  let key: String

  /// Where what is to take an object's place lies until it has been read back.
  static func temporaryKey(_ key: String) -> String { "\(key).carpack-new" }

  /// Gives up the uploads, and removes the objects.
  ///
  /// - Throws: `StoreError`; `TransportError`.
  func giveUp() async throws {
    let (temporary, probes) = (Self.temporaryKey(key), StoreProbe.prefix(key))
    for upload in try await client.uploads(to: key)
    where [key, temporary].contains(upload.key) || upload.key.hasPrefix(probes) {
      try await client.abandon(upload)
    }
    try await client.remove(temporary)
    try await client.list(probes) { page in
      for object in page { try await client.remove(object.key) }
    }
  }
}
