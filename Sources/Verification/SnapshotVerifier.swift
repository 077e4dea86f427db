package import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Snapshots

/// Verifies an archive and the snapshots in it: every byte of the file, each CAR bit for bit, each
/// tree, every blob.
///
/// The file is read, decompressed and hashed once. The order, lengths, tree and records of each
/// snapshot are checked; what snapshots share is examined only once. The digest of a whole CAR says
/// nothing of its blocks that their CIDs and the manifest do not say; it is computed for the
/// snapshots that decide the verdict, or for all.
public struct SnapshotVerifier {
  /// How much is checked.
  package typealias Depth = Survey.Depth

  /// Which snapshots are checked.
  package enum Scope: Sendable {
    /// All of them. For an account with several, what the newest lacks decides whether it is
    /// incomplete.
    case all
    /// All snapshots of an account; likewise.
    case account(DID)
    /// These, each of which counts.
    case snapshots([SnapshotHistory.Entry])

    /// Those that are chosen by a selector, an account, both or neither.
    ///
    /// - Throws: ``SelectionError`` if there are none.
    package init(
      _ selector: SnapshotSelector?, of account: String?,
      in history: @autoclosure () throws -> SnapshotHistory
    ) throws {
      self = .all
      guard selector != nil || account != nil else { return }
      let history = try history()
      let did = try history.account(account)
      if let did { self = .account(did) }
      if let selector { self = .snapshots(try history.select(selector, of: did)) }
    }
  }

  private let digestsAllCARs: Bool
  private let terms: ProofTerms?
  private let observer: Progress.Observer

  /// A verifier.
  ///
  /// - Parameters:
  ///   - digestsAllCARs: whether the digest of every snapshot's CAR is computed, not only of those
  ///     that decide.
  ///   - terms: how to judge the levels of proof; nil to leave them out.
  ///   - observer: called with the progress.
  package init(
    digestsAllCARs: Bool = false, judging terms: ProofTerms? = nil,
    observer: @escaping Progress.Observer = { _ in }
  ) {
    (self.digestsAllCARs, self.terms, self.observer) = (digestsAllCARs, terms, observer)
  }

  /// Verifies what `reader` reads.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - depth: `quick` compares stored bytes with their checksums and believes the manifests: it
  ///     neither decompresses nor hashes nor walks.
  ///   - scope: which snapshots; the file itself is verified as a whole in any case.
  /// - Throws: ``BackupError`` if there is no room for a temporary file; what is wrong with the
  ///   archive is in the report.
  package func verify(_ reader: ArchiveReader, _ depth: Depth, _ scope: Scope = .all) throws
    -> Report
  {
    let intake = try depth == .full ? VerifyingIntake(reader) : nil
    let archive = try reader.verify(depth, intake: intake?.frames) { done, total in
      observer(Progress(stage: "verifying", done: done, total: total))
    }
    var report = Report(archive: archive)
    // What is not where the index says may be elsewhere.
    let known = archive.isIntact ? intake?.history : nil
    let history =
      try known
      ?? SnapshotHistory(of: archive.worst == .damaged ? reader.surveyed() : reader)
    let reader = history.reader
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
    var checks = try intake.map { (intake) throws in
      let (census, cars) = try intake.census(of: reader, archive, observer)
      return SnapshotChecks(
        history, census, except: Set(archive.damagedSections), cars: cars,
        total: entries.filter { judged.contains($0.number) || digestsAllCARs }, judging: terms,
        observer: observer)
    }
    var reports: [SnapshotReport] = []
    // Those of one account one after the other, because their trees have most in common.
    for entry in Self.byAccount(entries) {
      let isJudged = judged.contains(entry.number)
      var found = SnapshotReport(
        entry: entry, isJudged: isJudged,
        isCommitted: try entry.isVouched || reader.isCommitted(entry.cid))
      if checks != nil {
        found.isExamined = true
        found.isCARDigested = isJudged || digestsAllCARs
        found.blobs.listFault = entry.blobs.listFault
        try checks?.check(&found)
      } else {
        (found.blobs, found.unreadable) = (entry.blobs, entry.unreadable)
      }
      reports.append(found)
    }
    report.snapshots = reports.sorted { $0.entry.number > $1.entry.number }
    report.recordWarnings = checks?.recordWarnings ?? []
    return report
  }

  /// The snapshots to look at, the newest first, and the numbers of those that decide whether
  /// something is missing.
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

  /// The snapshots of each account together, the newest first.
  private static func byAccount(_ entries: [SnapshotHistory.Entry]) -> [SnapshotHistory.Entry] {
    let newest = Dictionary(entries.map { ($0.did, $0.number) }, uniquingKeysWith: max)
    return entries.sorted {
      (newest[$0.did] ?? 0, $0.number) > (newest[$1.did] ?? 0, $1.number)
    }
  }
}
