package import ATProtocol
package import Archive
internal import Files
package import IPLD

/// Accepts that blobs are lost, or revokes that.
///
/// A blob that is accepted as lost is not requested any more, and does not make the archive
/// incomplete. The acceptance is recorded in the newest snapshot of an account, whose manifest is
/// made again with it, as forgetting snapshots makes manifests again: one more generation, in which
/// the new manifest replaces the old one. Later snapshots copy it as long as the blob is missing.
package struct LossAcceptance: Sendable {
  /// The result: how many blobs were accepted as lost, or are no longer; how many losses are
  /// accepted now; the blobs that are missing and not accepted as lost; what is committed now; by
  /// how many bytes the archive has grown; and the snapshots of an unfinished write that could not
  /// be kept.
  package typealias Report = (
    changedCount: Int, acceptedCount: Int, missing: BlobLedger.MissingList, generation: Generation,
    bytesAdded: UInt64, lost: [LostSnapshot]
  )

  /// The blobs, each of which has to be missing or, to revoke, accepted as lost; nil for all of
  /// these, except that no loss with a temporary reason is accepted.
  private let chosen: Set<CID>?
  private let acceptance: BlobLedger.Acceptance?

  /// Accepts the loss of missing blobs, or revokes that.
  ///
  /// - Parameters:
  ///   - chosen: the blobs, each of which has to be missing or, to revoke, accepted as lost; nil
  ///     for all of these, except that no loss with a temporary reason is accepted.
  ///   - acceptance: when and why; nil to take it back.
  package init(of chosen: [CID]?, _ acceptance: BlobLedger.Acceptance?) {
    (self.chosen, self.acceptance) = (chosen.map { Set($0) }, acceptance)
  }

  /// Records it in the newest snapshot of each account, or of one.
  ///
  /// All checksums are compared before the archive is opened for writing. If nothing changes,
  /// nothing is written.
  ///
  /// - Parameters:
  ///   - storage: the archive.
  ///   - name: its name in messages.
  ///   - account: returns the account to change; nil for all.
  /// - Throws: ``BackupError/notMissing(_:)`` for a blob that is not missing, or whose loss is not
  ///   accepted, and ``BackupError/damagedArchive(_:_:)``; both change nothing. `ArchiveError` if
  ///   it cannot be written; what `account` throws.
  package func apply(
    to storage: any ArchiveStorage, name: String,
    account: (SnapshotHistory) throws -> DID? = { _ in nil }
  ) throws -> Report {
    let found = try SourceArchive(locking: storage, name: name)
    try found.verifyChecksums()
    var plan = try plan(found, account: try account(found.history))
    guard plan.report.changedCount > 0 else { return plan.report }
    let (generation, bytesAdded, lost) = try found.append(to: storage) { archive in
      plan = try self.plan(archive, account: try account(archive.history))
      let chain = try ManifestChain(
        archive.history.entries.map { ChainLink($0) }, in: archive, replacing: plan.manifests)
      return (chain, plan.pages, [])
    }
    (plan.report.generation, plan.report.bytesAdded) = (generation, bytesAdded)
    plan.report.lost = lost
    return plan.report
  }

  /// What is to be written: manifests that are rebuilt, by the CIDs that they have, and pages.
  private typealias Plan = (report: Report, manifests: [CID: Snapshot], pages: [Block])

  private func plan(_ archive: SourceArchive, account: DID?) throws -> Plan {
    var plan: Plan = ((0, 0, [], archive.reader.generation, 0, []), [:], [])
    var unknown = chosen ?? []
    for entry in archive.history.newestOfAccounts where account == nil || account == entry.did {
      let archived = try ArchivedSnapshot(entry.cid, in: archive.reader)
      var ledger = BlobLedger(
        missing: try archived.missingNow().blobs.lazy.filter { $0.damage == nil }.map(\.blob))
      // More than the manifest knows of is damage, which is not for accepting.
      guard ledger.counts.missing <= archived.snapshot.blobs.missing,
        ledger.counts.listedMissing <= archived.snapshot.blobs.listedMissing
      else {
        throw BackupError.damagedArchive(archive.name, "it has lost blobs that it held")
      }
      var changed = Dictionary(
        ledger.accept(acceptance) {
          chosen?.contains($0.cid) ?? (acceptance == nil || $0.reason.isLasting)
        }.map { ($0.cid, $0) },
        uniquingKeysWith: { $1 })
      unknown.subtract(acceptance == nil ? Array(changed.keys) : Array(ledger.missing.cids))
      plan.report.acceptedCount += ledger.counts.accepted
      for entry in ledger.missing where entry.accepted == nil { plan.report.missing.append(entry) }
      plan.report.changedCount += changed.count
      guard !changed.isEmpty else { continue }
      // The pages keep what they say of blobs that have arrived since, and the figure is of the
      // others.
      var entries = try archived.missingBlobs().map { changed.removeValue(forKey: $0.cid) ?? $0 }
      entries += ledger.missing.compactMap { changed.removeValue(forKey: $0.cid) }
      let pages = try BlobLedger.pages(missing: entries)
      var snapshot = archived.snapshot
      snapshot.missingPages = pages.map(\.cid)
      snapshot.blobs.accepted = ledger.counts.accepted
      plan.manifests[entry.cid] = snapshot
      plan.pages += pages
    }
    if let cid = unknown.min(by: { "\($0)" < "\($1)" }) {
      throw BackupError.notMissing(
        acceptance == nil
          ? "the loss of \(cid) is not accepted in the newest snapshot"
          : "\(cid) is not missing in the newest snapshot")
    }
    return plan
  }
}
