package import ATProtocol
package import Archive
package import Snapshots

/// Forgets snapshots: appends a chain of manifests without them.
///
/// That is one more generation, which counts as a whole or not at all. The manifests from the first
/// forgotten snapshot on are rebuilt. What forgotten snapshots held stays in the file until it is
/// compacted.
extension RetentionPolicy {
  /// The result of pruning: the decision about each snapshot; what is committed now; by how many
  /// bytes the archive has grown; and the snapshots of an unfinished write that could not be kept.
  package typealias Report = (
    plan: Plan, generation: Generation, bytesAdded: UInt64, lost: [LostSnapshot]
  )

  /// What ``prune(_:name:forgetting:account:)`` would do, which only reads the archive.
  package func plan(
    _ reader: ArchiveReader, name: String, forgetting named: Set<Int>,
    account: (SnapshotHistory) throws -> DID?
  ) throws -> Report {
    let archive = try SourceArchive(reader, name: name, allowsTail: true)
    let plan = try Plan(
      archive.history, self, forgetting: named, account: try account(archive.history))
    return (plan, archive.reader.generation, 0, [])
  }

  /// Forgets what the policy does not keep.
  ///
  /// If it keeps everything, nothing is written. Otherwise all checksums are compared before the
  /// archive is opened for writing, and all manifests are made again before the first is appended.
  ///
  /// - Parameters:
  ///   - storage: the archive.
  ///   - name: its name in messages.
  ///   - named: snapshots that are forgotten whatever the policy says, by their numbers.
  ///   - account: returns the only account of which any are forgotten; nil for all.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged, which changes nothing;
  ///   `ArchiveError` if it cannot be written; what `account` throws.
  package func prune(
    _ storage: any ArchiveStorage, name: String, forgetting named: Set<Int> = [],
    account: (SnapshotHistory) throws -> DID? = { _ in nil }
  ) throws -> Report {
    let found = try SourceArchive(locking: storage, name: name)
    var plan = try Plan(found.history, self, forgetting: named, account: try account(found.history))
    if plan.forgottenCount == 0, found.reader.recovery == nil {
      return (plan, found.reader.generation, 0, [])
    }
    try found.verifyChecksums()
    let (generation, bytesAdded, lost) = try found.append(to: storage) { archive in
      plan = try Plan(
        archive.history, self, forgetting: named, account: try account(archive.history))
      guard plan.forgottenCount > 0 else { return nil }
      let forgotten = plan.verdicts.filter(\.reasons.isEmpty).map(\.entry.member)
      return (try ManifestChain(plan.links, in: archive), [], Set(forgotten))
    }
    return (plan, generation, bytesAdded, lost)
  }
}
