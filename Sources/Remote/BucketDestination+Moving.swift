package import ATProtocol
internal import Files
internal import HTTP
internal import ObjectStore

/// Moving archives aside, and back.
extension BucketDestination {
  /// The longest part that a store copies at once, in bytes.
  private static let longestCopy: UInt64 = 5 << 30

  /// The key to which the archive of an account is moved: the keys of a day share a prefix, so that
  /// a lifecycle rule of the bucket can delete them.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - day: such as `2026-11-26`.
  package func keyAside(of did: DID, on day: String) -> String {
    let name = FileNaming.name(did.text, ending: FileNaming.archiveEnding)
    return "\(place.key)removed/\(day)/\(name)"
  }

  /// Moves the archive of an account to another key.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: `StoreError`, also if the store does not copy objects; `FetchFailure`;
  ///   `TransportError`. The archive is still in its place then.
  package func putAside(_ did: DID, at key: String) async throws -> Bool {
    try await move(archive(of: did).key, to: key, if: .none)
  }

  /// Moves an archive back, unless the account has one in its place: another by now, or the same,
  /// if moving it aside was interrupted.
  ///
  /// - Throws: as ``putAside(_:at:)`` does.
  package func bringBack(_ did: DID, from key: String) async throws {
    let place = archive(of: did).key
    guard try await RemoteObject.find(object(place)) == nil else { return }
    _ = try await move(key, to: place, if: .isAbsent)
  }

  /// Deletes an archive that was moved aside.
  ///
  /// - Throws: `StoreError`; `TransportError`.
  package func removeAside(_ key: String) async throws { try await client.remove(key) }

  /// How many bytes the archive of an account has; nil if there is none.
  ///
  /// - Throws: `FetchFailure`; `TransportError`.
  package func length(ofArchiveOf did: DID) async throws -> UInt64? {
    try await RemoteObject.find(object(archive(of: did).key), length: 1)?.count
  }

  private func move(_ source: String, to target: String, if condition: BucketClient.Condition)
    async throws -> Bool
  {
    guard let found = try await RemoteObject.find(object(source)) else { return false }
    let tag = try found.requireTag()
    // A move that was interrupted may have left one.
    for left in try await client.uploads(to: target) where left.key == target {
      try await client.abandon(left)
    }
    let upload = try await client.beginUpload(of: target)
    do {
      var parts: [BucketClient.Part] = []
      for begin in stride(from: 0, to: found.count, by: Int(Self.longestCopy)) {
        let range = begin..<min(found.count, begin + Self.longestCopy)
        parts.append(
          try await client.copy(source, tag: tag, range, asPart: parts.count + 1, of: upload))
      }
      try await client.complete(upload, parts, if: condition)
    } catch {
      // The error that matters is the first one; the next move clears what is left.
      try? await client.abandon(upload)
      throw error
    }
    // Only what is there twice is deleted.
    guard try await RemoteObject.find(object(target))?.count == found.count else {
      throw StoreError(.malformed, "\(target): the copy differs from the original")
    }
    try await client.remove(source)
    return true
  }
}
