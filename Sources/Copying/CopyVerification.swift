internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Verification

/// Verifies a new archive against those that its snapshots were copied from.
///
/// It relies on nothing that the copier knows.
struct CopyVerification {
  let sources: [SourceArchive]
  /// The snapshots that were copied, the oldest first.
  let links: [ChainLink]
  /// Whether what is the account owner's alone was copied, too.
  let keepsPrivateData: Bool
  let observer: Progress.Observer

  /// Verifies every byte, every snapshot, and that every blob is there that a source holds.
  ///
  /// - Throws: ``BackupError/copyFailed(_:)`` for the first thing that is wrong;
  ///   ``BackupError/damagedArchive(_:_:)`` if it is so in a source, too.
  func verify(_ storage: any ArchiveStorage) throws {
    do {
      let allowsLarge = sources.contains { $0.reader.limits.allowsLarge }
      let reader = try ArchiveReader(
        try storage.map(), limits: ReadLimits(allowsLarge: allowsLarge))
      let report = try SnapshotVerifier(observer: observer).verify(reader, .full)
      try check(report)
      for (new, link) in zip(report.snapshots.reversed(), links) {
        try checkManifest(try ArchivedSnapshot.manifest(new.entry.cid, in: reader), link)
      }
      // What a server only listed may be held by another archive, for another account.
      try checkMissing(report.missingBlobs.filter { $0.record != nil }.map(\.cid))
    } catch let error as ArchiveError where error.reason.isDamage {
      throw BackupError.copyFailed("\(error)")
    } catch let error as SnapshotError {
      throw BackupError.copyFailed("\(error)")
    }
  }

  private func check(_ report: SnapshotVerifier.Report) throws {
    if let what = report.firstDamage {
      // A source may say of itself what is not so.
      for source in sources {
        let old = try SnapshotVerifier(observer: observer).verify(source.reader, .full)
        if let damage = old.firstDamage { throw BackupError.damagedArchive(source.name, damage) }
      }
      throw BackupError.copyFailed(what)
    }
    guard report.snapshots.count == links.count else {
      throw BackupError.copyFailed(
        "it holds \(report.snapshots.count) snapshots, and \(links.count) were copied")
    }
  }

  /// Compares a manifest with the one it is made of.
  private func checkManifest(_ new: Snapshot, _ link: ChainLink) throws {
    let source = sources[link.source]
    var old = try source.reading {
      try ArchivedSnapshot.manifest(link.manifest, in: source.reader)
    }
    if !keepsPrivateData { old.privateData = nil }
    // What one archive lacks another may have brought.
    let countsBlobs = new.blobs.held <= old.blobs.held
    guard try new.content(countsBlobs: countsBlobs) == old.content(countsBlobs: countsBlobs),
      new.isUnvouched != link.isVouched
    else {
      throw BackupError.copyFailed("a manifest does not say what \(link.manifest) said")
    }
  }

  /// Looks in the sources for blobs that are referred to and not in the new archive.
  private func checkMissing(_ cids: [CID]) throws {
    for source in sources {
      let states = try source.reading { try source.reader.states(cids.count) { cids[$0] } }
      if let index = states.firstIndex(where: { $0.bodyLength != nil }) {
        throw BackupError.copyFailed("the blob \(cids[index]) is not in it")
      }
    }
  }
}
