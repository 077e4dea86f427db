import Age
package import Archive
package import Sealing

/// What the archives of tests are sealed with: one owner for all of them, whose key opens them
/// wherever an archive is opened.
package struct TestSeal: Sendable {
  private static let owner: Result<TestSeal, any Error> = Result {
    let identity = try AgeIdentity.generate()
    let ring = KeyRing { [identity] in [identity] }
    let layer = SealedLayer(ring)
    StorageLayers.install(layer)
    return TestSeal(identity: identity, ring: ring, layer: layer)
  }

  /// What opens the archives.
  package let ring: KeyRing
  private let identity: AgeIdentity
  private let layer: SealedLayer

  private init(identity: AgeIdentity, ring: KeyRing, layer: SealedLayer) {
    (self.identity, self.ring, self.layer) = (identity, ring, layer)
  }

  /// The owner's key.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  package init() throws {
    self = try Self.owner.get()
  }

  /// The archive in a storage, begun if nothing can be in it.
  ///
  /// - Throws: what the storage throws; `ArchiveError`; `SealedError`.
  package func archive(in storage: any ArchiveStorage) throws -> any ArchiveStorage {
    if try storage.size > 0 {
      do {
        return try layer.storage(in: storage)
      } catch let error as ArchiveError where error.reason == .unbegunSeal {
        try storage.truncate(to: 0)
      }
    }
    return try layer.create(in: storage, for: [.key(identity.recipient)])
  }

  /// The archive that these bytes hold: they themselves if it is not sealed, and none if nothing
  /// can be in it.
  ///
  /// - Throws: `ArchiveError`; `SealedError`.
  package static func plain(_ bytes: [UInt8]) throws -> [UInt8] {
    let file = MappedFile(copying: bytes)
    guard file.count > 0, file.layer != nil else { return bytes }
    do {
      let map = try file.archive()
      let plain = map.withBytes { bytes in bytes.indices.map { bytes[$0] } }
      try map.checkFetched()
      return plain
    } catch let error as ArchiveError where error.reason == .unbegunSeal {
      return []
    }
  }
}
