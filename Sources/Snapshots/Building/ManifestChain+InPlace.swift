package import Archive
internal import Files
package import IPLD

/// An archive whose chain of manifests is made again in place, by one more generation.
///
/// It is locked, and nothing has been written to it yet.
package struct ChainRewriting {
  private let storage: any ArchiveStorage
  /// What is committed, and what may follow that.
  package let found: SourceArchive

  /// Locks an archive, and reads its snapshots.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged; `ArchiveError` if another
  ///   process writes to it.
  package init(_ storage: any ArchiveStorage, name: String) throws {
    try storage.lock()
    self.storage = storage
    found = try SourceArchive(ArchiveReader(storage.map()), name: name, allowsTail: true)
  }

  /// Appends a chain.
  ///
  /// - Parameter plan: makes it, with the pages that its manifests name anew, for the archive as it
  ///   is once it is open for writing: an interrupted write may have left one snapshot more. Nil if
  ///   there is nothing to be changed.
  /// - Throws: what `plan` throws; what the writer throws.
  /// - Returns: what is committed, and by how many bytes the archive has grown.
  package func append(
    _ plan: (SourceArchive) throws -> (chain: ManifestChain, pages: [Block])?
  ) throws -> (Generation, bytesAdded: UInt64) {
    let header = try found.reading { try found.reader.carHeader }
    var writer = try ArchiveWriter.open(storage, carHeader: header)
    let archive = try SourceArchive(
      writer.reader ?? found.reader, name: found.name, allowsTail: true)
    let before = archive.reader.generation
    guard let (chain, pages) = try plan(archive) else { return (before, 0) }
    return try writer.orAbandon { writer in
      for page in pages { try writer.append(page.cid, page.bytes.span) }
      let generation = try chain.end(&writer)
      return (generation, generation.committedLength - before.committedLength)
    }
  }
}

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
  package init(
    _ links: [ChainLink], in archive: SourceArchive, replacing: [CID: Snapshot] = [:],
    toleratesDamage: Bool = false
  ) throws {
    try self.init()
    var orders = ResolvedOrders()
    for link in ChainLink.chain(links) {
      let archived = try archive.reading { try ArchivedSnapshot(link.manifest, in: archive.reader) }
      var snapshot = archived.snapshot
      let replacement = replacing[link.manifest]
      if isEmpty, snapshot.previous == head, snapshot.isUnvouched != link.isVouched,
        replacement == nil
      {
        keep(archived)
        continue
      }
      snapshot = replacement ?? snapshot
      snapshot.isUnvouched = !link.isVouched
      do {
        _ = try archive.reading {
          try append(snapshot, orders.order(of: archived).order)
        }
      } catch BackupError.damagedArchive where toleratesDamage {
        try append(snapshot, nil)
      }
    }
  }
}
