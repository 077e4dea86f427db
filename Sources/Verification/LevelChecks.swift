internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots

/// Finds out what is proven of snapshots, by what the archive itself holds.
///
/// The evidence about an account is read and checked once for all of its snapshots.
struct LevelChecks {
  private let reader: ArchiveReader
  private let history: SnapshotHistory
  private let terms: ProofTerms
  private var evidence: [DID: Result<IdentityEvidence, any Error>] = [:]
  /// The number of each account's first snapshot.
  private var firsts: [DID: Int] = [:]
  /// What does not go forward, by the index of the snapshot.
  private let disruptions: [Int: [(kind: Standing.Doubt, before: Int, isAccepted: Bool)]]

  init(_ reader: ArchiveReader, _ history: SnapshotHistory, _ terms: ProofTerms) {
    (self.reader, self.history, self.terms) = (reader, history, terms)
    disruptions = Dictionary(
      history.disruptions.map { ($0.after, [($0.kind, $0.before, $0.isAccepted)]) },
      uniquingKeysWith: +)
    for entry in history.entries where entry.isVouched && firsts[entry.did] == nil {
      firsts[entry.did] = entry.number
    }
  }

  /// The levels of a snapshot that was verified.
  mutating func levels(of report: SnapshotVerifier.SnapshotReport) -> ProofLevels {
    var levels = ProofLevels()
    let entry = report.entry
    let damage = report.damage.first
    levels[.intact] =
      damage == nil && report.damagedBlobCount == 0
      ? .holds("every byte matches its CID") : .fails(damage ?? "blobs are damaged")
    levels[.wellFormed] =
      damage != nil
      ? .fails(damage ?? "")
      : entry.isComplete
        ? .holds("the tree keeps its rules, and all of it is here")
        : .fails("tree nodes or records are missing")
    (levels[.signed], levels[.identityProven]) = signature(of: entry)
    levels[.continuous] = continuity(of: entry)
    levels[.complete] = completeness(of: report)
    return levels
  }

  private func completeness(of report: SnapshotVerifier.SnapshotReport) -> ProofLevels.Finding {
    let lacking = report.missingBlobCount + report.missingListedCount - report.acceptedBlobCount
    if lacking > 0 {
      return .fails(lacking == 1 ? "1 blob is missing" : "\(lacking) blobs are missing")
    }
    if let fault = report.entry.blobs.listFault { return .fails(fault.sentence) }
    if !report.entry.isComplete {
      return .fails(
        "tree nodes or records are missing, which may refer to blobs that are not known")
    }
    if report.unreadable.mayHideBlobs {
      return .fails("records that cannot be read may refer to blobs that are not known")
    }
    return .holds(
      report.acceptedBlobCount > 0
        ? "nothing is missing but what is accepted as lost" : "no blob is missing")
  }

  private func continuity(of entry: SnapshotHistory.Entry) -> ProofLevels.Finding {
    guard entry.isVouched else { return .noEvidence("no footer leads to it") }
    let found = disruptions[entry.number - 1] ?? []
    let reasons = found.map { kind, before, isAccepted in
      let number = history.entries[before].number
      let what =
        kind == .rollback
        ? "its revision is older than that of snapshot \(number), which was there before: a rollback"
        : "its commit is another one than that of snapshot \(number) with the same revision: a fork"
      return isAccepted ? "\(what), which was accepted" : what
    }
    guard reasons.isEmpty else {
      let text = reasons.joined(separator: "; ")
      return found.allSatisfy(\.isAccepted) ? .holds(text) : .fails(text)
    }
    let odd = [Standing.Doubt.behind, .future].filter(entry.standing.doubts.contains)
    return .holds(
      (firsts[entry.did] == entry.number
        ? "it is the account's first" : "it follows from the one before it")
        + odd.map { "; the account \($0)" }.joined())
  }

  // MARK: Who signed

  private mutating func signature(of entry: SnapshotHistory.Entry) -> (
    signed: ProofLevels.Finding, identity: ProofLevels.Finding
  ) {
    let commit: Commit
    do {
      let block = try ArchivedSnapshot.block(entry.commit, in: reader)
      commit = try Commit(block.bytes.span)
    } catch {
      return (.noEvidence("the commit cannot be read"), .noEvidence("the commit cannot be read"))
    }
    if let key = terms.key {
      let isSigned = commit.isSigned(by: key)
      return (
        isSigned ? .holds("signed with the key given") : .fails("not signed with the key given"),
        .noEvidence("the key was given, and not looked up")
      )
    }
    switch evidence(of: entry.did) {
    case .failure(let error):
      let why = "what says who the account is cannot be read: \(error)"
      return (.noEvidence(why), .fails(why))
    case .success(let evidence): return judge(commit, entry, evidence)
    }
  }

  private func judge(
    _ commit: Commit, _ entry: SnapshotHistory.Entry, _ evidence: IdentityEvidence
  ) -> (signed: ProofLevels.Finding, identity: ProofLevels.Finding) {
    if let history = evidence.history {
      let verdict = history.judge(commit, now: terms.now)
      let finding: ProofLevels.Finding =
        verdict.isGenuine ? .holds("\(verdict)") : .fails("\(verdict)")
      return (
        finding,
        verdict.isGenuine
          ? .holds("the key follows from the DID, by the PLC directory's log") : finding
      )
    }
    let identity: ProofLevels.Finding =
      evidence.faults.first.map { .fails($0) }
      ?? .noEvidence("the archive has no history of the account's keys")
    // The newest document of the time that names a key, or, if none did, the first after it.
    let documents = evidence.documents
    let known = documents.partitioningIndex { $0.snapshot > entry.number }
    let namesKey = { (entry: IdentityEvidence.Document) in entry.document?.signingKey != nil }
    let place =
      documents[..<known].lastIndex(where: namesKey)
      ?? documents[known...].firstIndex(where: namesKey)
    guard let place, let document = documents[place].document else {
      let isUnsigned = entry.standing.doubts.contains(.unsigned)
      return (
        .noEvidence(
          isUnsigned
            ? "no key of the account was known when it was backed up"
            : "the archive does not say which key the account had"), identity
      )
    }
    let verdict = document.judge(commit, now: terms.now)
    return (verdict.isGenuine ? .holds("\(verdict)") : .fails("\(verdict)"), identity)
  }

  private mutating func evidence(of did: DID) -> Result<IdentityEvidence, any Error> {
    if let known = evidence[did] { return known }
    let found = Result { try IdentityEvidence(of: did, history, in: reader) }
    evidence[did] = found
    return found
  }
}
