internal import ATProtocol
package import Archive
package import Files
internal import IPLD
internal import Snapshots
package import Verification

/// Repairs an archive in place, and names every snapshot that is whole and that no footer leads to
/// any more.
///
/// ``run(_:from:limits:keepsOrdinals:progress:)`` repairs indexes and footers, and writes lost
/// sections again that another archive has. A snapshot that was listed before, and is not on the
/// chain of manifests afterwards, is put into the chain by one more generation and marked as found;
/// the archive head stays what a footer vouches for. What is there in the end is verified.
extension ArchiveRepair {
  /// What was done, and what came of it.
  package struct Outcome: Sendable {
    /// What was done to indexes and footers.
    package let archive: Report
    /// How many snapshots were found and named.
    package let namedCount: Int
    /// What verifying the archive came to.
    package let verification: SnapshotVerifier.Report

    /// The first thing that is damaged still; nil if nothing is.
    package var damage: String? {
      verification.verdict == .damaged ? verification.firstDamage : nil
    }
  }

  /// Repairs an archive.
  ///
  /// - Parameters:
  ///   - storage: The archive; it is locked.
  ///   - sources: Other archives, from which lost sections are taken that they have.
  ///   - limits: How much it may hold.
  ///   - verifier: Verifies what came of it.
  ///   - observer: Is told how far it is.
  /// - Throws: `ArchiveError` if it is no archive, needs a later version, or cannot be written;
  ///   what was written by then is right, and repairing again goes on.
  package static func repair(
    _ storage: any ArchiveStorage, from sources: [ArchiveReader] = [],
    limits: ArchiveLimits = ArchiveLimits(), verifier: SnapshotVerifier = SnapshotVerifier(),
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Outcome {
    try storage.lock()
    let before = try ArchiveReader(storage.map(), limits: limits).surveyed()
    let history = try SnapshotHistory(of: before)
    var listed = history.entries
    let keepsOrdinals =
      try before.mayHaveLostFooter
      || history.unfinished.contains { try SnapshotHistory.isWhole($0, in: before) }
    let report = try ArchiveRepair.run(
      storage, from: sources, limits: limits, keepsOrdinals: keepsOrdinals
    ) { done, total in
      observer(Progress(stage: "examining", done: done, total: total))
    }
    if report.sectionsHealed > 0 {
      // A manifest that was lost may be there again, and no footer may lead to it.
      let healed = try ArchiveReader(storage.map(), limits: limits).surveyed()
      listed = try SnapshotHistory(of: healed).entries
    }
    // If nothing is damaged, what a snapshot lacks was never there; otherwise damage may be why.
    let doubtful = report.firstLost == nil ? Set(listed.map(\.cid)) : []
    let namedCount = try SnapshotHistory.putFound(
      listed, doubtful: doubtful, into: storage, limits: limits)
    let repaired = try ArchiveReader(storage.map(), limits: limits)
    return Outcome(
      archive: report, namedCount: namedCount, verification: try verifier.verify(repaired, .full))
  }
}

extension ArchiveReader {
  /// How much is here that another archive lacks, either of which may be damaged: snapshots, as
  /// told by their commits; blobs and documents; blocks of repositories, and of bookkeeping.
  ///
  /// - Throws: `ArchiveError` if one cannot be read.
  package func surplus(
    over other: ArchiveReader
  ) throws -> (snapshots: Int, blobs: Int, blocks: Int) {
    let known = Set(try SnapshotHistory(of: other).entries.map(\.commit))
    let history = try SnapshotHistory(of: self)
    let cids = try history.reader.readableCIDs()
    var (blobs, blocks) = (0, 0)
    for (cid, state) in zip(cids, try other.states(cids.count) { cids[$0] })
    where state.bodyLength == nil {
      if cid.codec == .raw { blobs += 1 } else { blocks += 1 }
    }
    return (history.entries.count { !known.contains($0.commit) }, blobs, blocks)
  }
}
