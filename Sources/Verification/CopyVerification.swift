internal import ATProtocol
package import Archive
internal import Files
internal import IPLD
package import Snapshots

/// Verifies a new archive against those that its snapshots were copied from.
///
/// It relies on nothing that the copier knows.
extension SnapshotVerifier {
  /// Verifies every byte, every snapshot, and that every blob is there that a source holds.
  ///
  /// - Parameters:
  ///   - storage: the new archive.
  ///   - sources: the archives that its snapshots were copied from.
  ///   - links: the snapshots that were copied, the oldest first.
  ///   - keepsPrivateData: whether private data was copied, too.
  /// - Throws: ``BackupError/copyFailed(_:)`` for the first thing that is wrong;
  ///   ``BackupError/damagedArchive(_:_:)`` if it is so in a source, too.
  package func verify(
    _ storage: any ArchiveStorage, asCopyOf sources: [SourceArchive], _ links: [ChainLink],
    keepsPrivateData: Bool
  ) throws {
    // Little is asked of the sources from now on.
    for source in sources { source.reader.keepOnly(packs: 2) }
    try onDamage(BackupError.copyFailed) {
      let allowsLarge = sources.contains { $0.reader.limits.allowsLarge }
      let reader = try ArchiveReader(
        try storage.map(), limits: ArchiveLimits(allowsLarge: allowsLarge))
      let report = try verify(reader, .full)
      try check(report, sources, links.count)
      for (new, link) in zip(report.snapshots.reversed(), links) {
        let source = sources[link.source]
        var old = try source.reading {
          try ArchivedSnapshot.manifest(link.manifest, in: source.reader)
        }
        if !keepsPrivateData { old.privateData = nil }
        let new = try ArchivedSnapshot.manifest(new.entry.cid, in: reader)
        // What one archive lacks another may have brought.
        let countsBlobs = new.blobs.held <= old.blobs.held
        guard try new.content(countsBlobs: countsBlobs) == old.content(countsBlobs: countsBlobs),
          new.isUnvouched != link.isVouched
        else {
          throw BackupError.copyFailed("a manifest differs in content from \(link.manifest)")
        }
      }
      // What a server only listed may be held by another archive, for another account.
      let missing = report.missingBlobs.filter { $0.record != nil }.map(\.cid)
      for source in sources {
        let states = try source.reading {
          try source.reader.states(missing.count) { missing[$0] }
        }
        if let index = states.firstIndex(where: { $0.bodyLength != nil }) {
          throw BackupError.copyFailed("the blob \(missing[index]) is not in it")
        }
      }
    }
  }

  private func check(
    _ report: Report, _ sources: [SourceArchive], _ count: Int
  ) throws {
    if let what = report.firstDamage {
      // A source may make false claims about itself.
      for source in sources {
        let old = try verify(source.reader, .full)
        if let damage = old.firstDamage { throw BackupError.damagedArchive(source.name, damage) }
      }
      throw BackupError.copyFailed(what)
    }
    guard report.snapshots.count == count else {
      throw BackupError.copyFailed(
        "it holds \(report.snapshots.count) snapshots, and \(count) were copied")
    }
  }
}
