package import ATProtocol
package import Archive
internal import Files
internal import IPLD

/// Removes from an archive what app views have shown of others.
///
/// The manifests that link to it are made again without the link, by one more generation. The
/// blocks stay in the file until it is compacted.
package enum ContextRemoval {
  /// The result: how many snapshots had a context; what is committed now; by how many bytes the
  /// archive has grown; and the snapshots of an unfinished write that could not be kept.
  package typealias Report = (
    snapshotCount: Int, generation: Generation, bytesAdded: UInt64, lost: [LostSnapshot]
  )

  /// Removes it from all snapshots of an account.
  ///
  /// If there is none, nothing is written. Otherwise all checksums are compared first.
  ///
  /// - Parameters:
  ///   - storage: the archive.
  ///   - name: its name in messages.
  ///   - account: returns the account to change; nil for all.
  /// - Throws: ``BackupError/damagedArchive(_:_:)``, which changes nothing; `ArchiveError` if it
  ///   cannot be written; what `account` throws.
  package static func apply(
    to storage: any ArchiveStorage, name: String,
    account: (SnapshotHistory) throws -> DID? = { _ in nil }
  ) throws -> Report {
    let found = try SourceArchive(locking: storage, name: name)
    guard try !replacements(found, account(found.history)).isEmpty else {
      return (0, found.reader.generation, 0, [])
    }
    try found.verifyChecksums()
    var count = 0
    let (generation, bytesAdded, lost) = try found.append(to: storage) { archive in
      let manifests = try replacements(archive, account(archive.history))
      count = manifests.count
      let links = archive.history.entries.map { ChainLink($0) }
      return (try ManifestChain(links, in: archive, replacing: manifests), [], [])
    }
    return (count, generation, bytesAdded, lost)
  }

  /// The manifests without the link, by the CIDs of those that have it.
  private static func replacements(_ archive: SourceArchive, _ account: DID?) throws
    -> [CID: Snapshot]
  {
    var manifests: [CID: Snapshot] = [:]
    for entry in archive.history.entries where account == nil || account == entry.did {
      var snapshot = try archive.reading {
        try ArchivedSnapshot.manifest(entry.cid, in: archive.reader)
      }
      guard snapshot.context != nil else { continue }
      snapshot.context = nil
      manifests[entry.cid] = snapshot
    }
    return manifests
  }
}
