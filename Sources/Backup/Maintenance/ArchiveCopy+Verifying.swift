internal import ATProtocol
internal import Archive
internal import IPLD

/// Whether a copy is what it has to be, asked of the new file alone and of the old ones, not of what copied.
extension ArchiveCopy {
  /// Verifies the new archive: every byte of it, every snapshot with its CAR, its tree and its lists, every blob that was held.
  ///
  /// - Throws: ``BackupError/copyFailed(_:)`` at the first thing that is not as it has to be; ``BackupError/damagedArchive(_:_:)`` if that is so in
  ///   the old one, too.
  func verify(_ storage: any ArchiveStorage) throws {
    do {
      let reader = try ArchiveReader(try storage.map())
      let report = try SnapshotVerifier(observer: observer).verify(reader, .full)
      try check(report)
      for (entry, pick) in zip(report.snapshots.reversed().map(\.entry), picks) {
        try checkManifest(try ArchivedSnapshot(entry.cid, in: reader), pick)
      }
      // One that a server only listed may be in another archive, for another account.
      try checkMissing(report.missingBlobs.filter { $0.record != nil }.map(\.cid))
    } catch let error as ArchiveError where error.reason.isDamage {
      throw BackupError.copyFailed("\(error)")
    } catch let error as SnapshotError {
      throw BackupError.copyFailed("\(error)")
    }
  }

  private func check(_ report: SnapshotVerifier.Report) throws {
    if let what = Self.damage(report) {
      // Copied from an archive that says of itself what is not so?
      for source in sources {
        let old = try SnapshotVerifier(observer: observer).verify(source.reader, .full)
        if let damage = Self.damage(old) {
          throw BackupError.damagedArchive(source.name, damage)
        }
      }
      throw BackupError.copyFailed(what)
    }
    guard report.snapshots.count == picks.count else {
      throw BackupError.copyFailed(
        "it holds \(report.snapshots.count) snapshots, and \(picks.count) were copied")
    }
  }

  /// The first that is damaged; nil if nothing is.
  private static func damage(_ report: SnapshotVerifier.Report) -> String? {
    if !report.archive.isIntact {
      return report.archive.findings.first.map { "\($0)" } ?? "it is damaged"
    }
    return report.damage.first
      ?? report.damagedBlobs.first.map { "the blob \($0.cid) is damaged: \($0.why)" }
  }

  /// Compares a manifest with the one it is made of.
  private func checkManifest(_ snapshot: ArchivedSnapshot, _ pick: Pick) throws {
    let new = try ManifestMap(snapshot)
    let source = sources[pick.source]
    let old = try source.reading {
      try ManifestMap(ArchivedSnapshot(pick.manifest, in: source.reader))
    }
    guard new.content == old.content else {
      throw BackupError.copyFailed("a manifest does not say what \(pick.manifest) said")
    }
  }

  /// Looks in the old archives for the blobs that are referred to and not in the new one.
  private func checkMissing(_ cids: [CID]) throws {
    for source in sources {
      let held = try source.reading { try source.reader.matches(cids.count) { cids[$0] } }
      if let index = held.firstIndex(where: { $0 != nil }) {
        throw BackupError.copyFailed("the blob \(cids[index]) is not in it")
      }
    }
  }
}
