internal import ATProtocol
internal import IPLD
internal import Snapshots

/// What an account would lack, or get back, where not all of it is restored.
extension RestorePlan {
  /// Says it, in sentences.
  ///
  /// - Throws: `ArchiveError`, ``SnapshotError`` if the archive cannot be read.
  func findLosses() throws -> [String] {
    var losses: [String] = []
    if unrestored.count > 0 {
      let referrers = Set(unrestored.first.compactMap(\.record)).count
      losses.append(
        "\(unrestored.count) of \(source.blobs.entries.count) blobs, to which at least \(referrers) records refer"
      )
    }
    if isOutdated, let old, case .active(let rev, _) = old.standing {
      losses.append(
        "what was written on \(old.url) after \(source.archived.snapshot.createdAt), up to revision \(rev.text)"
      )
    }
    if let newer = try newerInArchive() { losses.append(newer) }
    if !hasPreferences { losses.append("the preferences, which are not in the archive") }
    return losses
  }

  /// What the newest snapshot in the archive has and this one does not.
  private func newerInArchive() throws -> String? {
    let archived = source.archived
    let history = try SnapshotHistory(of: archived.reader)
    guard let newest = history.newestOfAccounts.first(where: { $0.did == archived.snapshot.did }),
      newest.commit != archived.snapshot.commit
    else { return nil }
    var (created, updated, deleted) = (0, 0, 0)
    let new = try ArchivedSnapshot(newest.cid, in: archived.reader)
    do {
      try SnapshotBlocks.compare(
        SnapshotBlocks(archived, observer: { _ in }), SnapshotBlocks(new, observer: { _ in })
      ) { change in
        guard case .record(let record) = change else { return }
        switch (record.old, record.new) {
        case (nil, _): created += 1
        case (_, nil): deleted += 1
        default: updated += 1
        }
      }
    } catch is MSTDiffError {
      return
        "the changes up to snapshot \(newest.number), the newest: its tree is damaged, so they cannot be listed"
    }
    let number = history.entries.first { $0.cid == archived.cid }?.number ?? 0
    return
      "the changes up to snapshot \(newest.number), the newest: records created (\(created)) and updated (\(updated)); deleted ones (\(deleted)) come back (\"carpack diff\" from \(number) to \(newest.number) lists them)"
  }
}
