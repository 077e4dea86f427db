package import ATProtocol
package import Archive
internal import Files
package import HTTP
internal import IPLD
package import ObjectStore
package import SystemPackage

/// The place in a bucket of the archives that backups write to.
public final class BucketDestination: Sendable {
  /// The address as given: an object's, or the prefix of all.
  package let place: BucketAddress
  let client: BucketClient
  /// Whether nothing else writes there, so that conditional writes are not needed.
  private let isExclusive: Bool
  /// The folder for what is kept between runs.
  let cache: FilePath

  /// A destination.
  ///
  /// - Parameters:
  ///   - place: an object's address; if its key is empty or ends with a slash, what the addresses
  ///     of all archives begin with.
  ///   - store: how to access the store.
  ///   - network: what the user set about the network.
  ///   - isExclusive: whether nothing else writes there, so that conditional writes are not needed.
  ///   - cache: the folder for what is kept between runs.
  /// - Throws: `StoreError` if the store's address cannot be used.
  package init(
    _ place: BucketAddress, _ store: StoreOptions, network: NetworkOptions, isExclusive: Bool,
    cache: FilePath
  ) throws {
    (self.place, self.isExclusive, self.cache) = (place, isExclusive, cache)
    client = try BucketClient(place.bucket, store, network: network)
  }

  /// Whether each account has an object of its own.
  package var isFolder: Bool { place.isFolder }

  /// Where the archive of an account is, or will be.
  ///
  /// In a bucket an archive is named after the account's DID: handles change, and then all archives
  /// would have to be opened to see whose they are.
  package func archive(of did: DID) -> BucketAddress {
    guard isFolder else { return place }
    let name = FileNaming.name(did.text, ending: FileNaming.archiveEnding)
    return BucketAddress(bucket: place.bucket, key: place.key + name)
  }

  /// A file here for something about an object, or the bucket: what is appended to it (`tail`), the
  /// mark that it is written to (`upload`), one that stands for it where something is noted
  /// (`notes`), or that it obeys conditions (`obeys`).
  package func file(_ ending: String, of place: some CustomStringConvertible) -> FilePath {
    let digest = SHA256.digest(of: Array("\(place)".utf8).span)
    return cache.appending("\("\(digest)".prefix(32)).\(ending)")
  }

  /// An object, for reading; nil if there is none.
  ///
  /// - Throws: `FetchFailure`; ``BackupError``.
  package func map(_ object: BucketAddress) async throws -> MappedFile? {
    try await FetchFailure.unlessAbsent { try await RemoteObject.open(self.object(object.key)) }
  }

  /// What a killed backup has left of an object that does not exist yet, for reading; nil if there
  /// is nothing.
  ///
  /// - Throws: ``BackupError`` and `ArchiveError` if it cannot be read.
  package func leftover(of object: BucketAddress) throws -> MappedFile? {
    let note = try AtomicFile.read(file("upload", of: object))
    let scratch = file("tail", of: object)
    guard let note, UploadLock.note(in: note) == BucketStorage.note(0, nil),
      AtomicFile.isTaken(scratch)
    else { return nil }
    return try MappedFile(scratch)
  }

  /// Checks whether the store can be written to, by writing to it.
  ///
  /// - Throws: ``PushError`` if it does not support conditional writes and they are needed;
  ///   `StoreError`, `TransportError`.
  package func check() async throws {
    guard !isExclusive else { return }
    let address = BucketAddress(bucket: place.bucket, key: "\(place.key)fleet")
    // Another worker on this machine that tries the store now keeps no mark for this one.
    let mark = try UploadLock(address, of: self)
    defer { mark?.release() }
    try await object(address.key, mark).giveUpLeftovers()
    try await probe(address.key, mark)
  }

  /// How many write races for an object may be lost.
  private static let maximumRaces = 5

  /// Retries something whenever another writer to the object was faster.
  ///
  /// - Throws: `StoreError` of the kind `conditionFailed` if one always is; what `body` throws.
  package static func retryingLostRaces<Value>(
    lost: () -> Void = {}, _ body: () async throws -> Value
  ) async throws -> Value {
    for _ in 1..<maximumRaces {
      do {
        return try await body()
      } catch let error as StoreError where error.kind == .conditionFailed {
        lost()
      }
    }
    return try await body()
  }

  /// An object there.
  ///
  /// - Parameters:
  ///   - key: its key.
  ///   - mark: where what is begun for it is noted; nil if nothing is written.
  func object(_ key: String, _ mark: UploadLock? = nil) -> BucketObject {
    BucketObject(client: client, key: key, isExclusive: isExclusive, mark: mark)
  }

  /// Puts a new object in the place of the one with a tag, or of none.
  ///
  /// - Throws: as ``requireConditionalWrites(for:_:)`` and ``BucketObject/replace(_:by:)`` do.
  func replace(
    _ key: String, _ tag: String?, by content: BucketObject.Content, _ mark: UploadLock
  ) async throws -> BucketObject.Written {
    try await requireConditionalWrites(for: key, mark)
    return try await object(key, mark).replace(tag, by: content)
  }

  /// Refuses to write to a store without conditional writes, unless nothing else writes there.
  ///
  /// - Throws: ``PushError``; `StoreError`, `TransportError`.
  func requireConditionalWrites(for key: String, _ mark: UploadLock) async throws {
    if !isExclusive, !hasObeyed { try await probe(key, mark) }
  }

  private func probe(_ key: String, _ mark: UploadLock?) async throws {
    let object = object(key, mark)
    guard try await object.obeysConditions() else {
      throw PushError.knowsNoConditions(object.name)
    }
    noteObedience()
  }
}
