internal import Archive
internal import IPLD

/// Changing the chain of an archive by appending to it.
extension ManifestChain {
  /// The chain of some of the archive's snapshots.
  ///
  /// Manifests before the first change stay what they are. Ordinals are what they were, so only
  /// orders that are relative to a manifest that was made again, or is not on the chain any more,
  /// change.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first.
  ///   - archive: where they are.
  ///   - replacing: manifests that are to say something else, by the CIDs that they have.
  ///   - toleratesDamage: whether an order that cannot be read is left as it is.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest or an order is damaged.
  init(
    _ links: [ChainLink], in archive: SourceArchive, replacing: [CID: ManifestMap] = [:],
    toleratesDamage: Bool = false
  ) throws {
    try self.init()
    var orders = ResolvedOrders()
    for link in ChainLink.chain(links) {
      let archived = try archive.reading { try ArchivedSnapshot(link.manifest, in: archive.reader) }
      let snapshot = archived.snapshot
      let replacement = replacing[link.manifest]
      if isEmpty, snapshot.previous == head, snapshot.isUnvouched != link.isVouched,
        replacement == nil
      {
        keep(archived)
        continue
      }
      var map = try replacement ?? archive.reading { try ManifestMap(archived) }
      map.isUnvouched = !link.isVouched
      do {
        _ = try archive.reading {
          try append(map, orders.order(of: archived).order, of: snapshot.did)
        }
      } catch BackupError.damagedArchive where toleratesDamage {
        try append(map, nil, of: snapshot.did)
      }
    }
  }
}
