public import ATProtocol
public import Archive
internal import IPLD

/// Verifies an archive and the snapshots in it: every byte of the file, each CAR bit for bit, each tree, every blob.
///
/// The bytes of the file are hashed once. What snapshots share is not looked at again in each of
/// them, but for their CARs, each of which has a digest of its own.
public struct SnapshotVerifier {
  /// How much is looked at.
  public typealias Depth = ArchiveVerifier.Depth

  /// Which snapshots are looked at.
  public enum Scope: Sendable {
    /// All of them. Of an account with several, what the newest lacks decides whether it is incomplete.
    case all
    /// Those of an account; likewise.
    case account(DID)
    /// These, each of which counts.
    case snapshots([SnapshotHistory.Entry])
  }

  private let observer: Progress.Observer

  /// A verifier.
  public init(observer: @escaping Progress.Observer = { _ in }) { self.observer = observer }

  /// Verifies what `reader` reads.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - depth: `quick` compares stored bytes with their checksums and believes the manifests: it
  ///     neither decompresses nor hashes nor walks.
  ///   - scope: which snapshots; the file itself is verified as a whole in any case.
  /// - Throws: ``BackupError`` if there is no room for a temporary file; what is wrong with the
  ///   archive is in the report.
  public func verify(_ reader: ArchiveReader, _ depth: Depth, _ scope: Scope = .all) throws
    -> Report
  {
    let archive = try ArchiveVerifier(reader).verify(depth) { done, total in
      observer(Progress(stage: "verifying", done: done, total: total))
    }
    var report = Report(archive: archive)
    // What is not where the index says may be elsewhere.
    if archive.worst == .damaged { try reader.surveyEverything() }
    let history = try SnapshotHistory(of: reader)
    for broken in history.breaks {
      switch broken.reason {
      case .damagedManifest, .unusableManifest: report.fileDamage.append("\(broken)")
      case .tooMany: report.isPartial = true
      // It is among what was found out about the file.
      case .damagedFooter: break
      }
    }
    if history.entries.isEmpty, history.breaks.isEmpty {
      report.fileDamage.append("\(SnapshotError.noSnapshot)")
    }
    let (entries, judged) = choose(scope, history)
    let census = depth == .full ? try take(reader, archive) : nil
    var checks = census.map {
      SnapshotChecks(
        reader, $0, except: Set(archive.damagedSections), total: entries, observer: observer)
    }
    for entry in entries {
      var found = SnapshotReport(
        entry: entry, isJudged: judged.contains(entry.number),
        isCommitted: try entry.isVouched || reader.isCommitted(entry.cid))
      if checks != nil {
        checks?.check(&found)
      } else {
        found.missingBlobCount = entry.blobs.missing
        found.missingListedCount = entry.blobs.listedMissing
        found.unreadable = entry.unreadable
        found.acceptedBlobCount = entry.blobs.accepted
      }
      report.snapshots.append(found)
    }
    report.recordWarnings = checks?.recordWarnings ?? []
    return report
  }

  /// The snapshots to look at, the newest first, and the numbers of those that decide whether something is missing.
  private func choose(_ scope: Scope, _ history: SnapshotHistory) -> (
    entries: [SnapshotHistory.Entry], judged: Set<Int>
  ) {
    var entries = Array(history.entries.reversed())
    switch scope {
    case .all: break
    case .account(let did): entries.removeAll { $0.did != did }
    case .snapshots(let chosen):
      return (chosen.sorted { $0.number > $1.number }, Set(chosen.map(\.number)))
    }
    return (entries, Set(history.newestOfAccounts.map(\.number)))
  }

  private func take(_ reader: ArchiveReader, _ archive: ArchiveVerification) throws -> BlockCensus {
    try BlockCensus(reader, except: Set(archive.damagedSections), observer: observer)
  }
}

extension ArchiveReader {
  /// Whether a section was written before the last footer.
  func isCommitted(_ cid: CID) throws -> Bool {
    try ordinal(of: cid).map { $0 < generation.sectionCount } ?? false
  }
}
