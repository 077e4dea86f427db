package import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots

/// What is proven of a snapshot, one level upon the other, each with its evidence.
///
/// None implies another: bytes may be whole and signed by a stranger, or genuine and incomplete.
package struct ProofLevels: Sendable {
  /// A level.
  package enum Level: String, CaseIterable, Sendable {
    /// Every byte matches the CID that it is stored under.
    case intact
    /// The tree of records keeps its rules, and all of it is here.
    case wellFormed = "well-formed"
    /// A key of the account signed the commit.
    case signed
    /// That key follows from the DID, by a history that leads back to its first operation.
    case identityProven = "identity-proven"
    /// The snapshot follows from the one before it: no earlier revision, and no other commit of the
    /// same.
    case continuous
    /// No blob is missing, be it referenced or listed, and every record can be read.
    case complete
  }

  /// Whether a level holds.
  package struct Finding: Equatable, Sendable {
    /// Whether it does; nil if nothing tells.
    package let isHeld: Bool?
    /// Why.
    package let why: String

    /// What was found, and why.
    package init(_ isHeld: Bool?, _ why: String) { (self.isHeld, self.why) = (isHeld, why) }

    /// What a signature comes to.
    package init(_ verdict: SignatureVerdict) { self.init(verdict.isGenuine, "\(verdict)") }

    /// Whether a commit is signed by a key that was given.
    package init(_ commit: Commit, by key: VerificationKey) {
      let isSigned = commit.isSigned(by: key)
      self.init(isSigned, isSigned ? "signed with the key given" : "not signed with the key given")
    }
  }

  private var findings: [Level: Finding] = [:]

  init() {}

  /// What was found about a level.
  package internal(set) subscript(level: Level) -> Finding {
    get { findings[level] ?? Finding(nil, "it was not looked at") }
    set { findings[level] = newValue }
  }

  /// What speaks against the account having made it: its signature, its identity, its history.
  package var doubts: [String] {
    var doubts: [String] = []
    for level: Level in [.signed, .identityProven, .continuous] {
      // Who did not sign proves no identity either: that is said once.
      let finding = self[level]
      if finding.isHeld == false, !doubts.contains(finding.why) { doubts.append(finding.why) }
    }
    return doubts
  }
}

/// What levels of proof are judged by beside what the archive holds: the time, to tell revisions of
/// the future, and the key that has to have signed; nil to go by what the archive holds.
package typealias ProofTerms = (now: UnixTime, key: VerificationKey?)

/// Finds out what is proven of snapshots, by what the archive itself holds.
///
/// The evidence about an account is read and checked once for all of its snapshots.
struct LevelChecks {
  private typealias Finding = ProofLevels.Finding

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
  ///
  /// - Parameters:
  ///   - report: what was found.
  ///   - commit: its commit; nil if that cannot be read.
  mutating func levels(
    of report: SnapshotVerifier.SnapshotReport, _ commit: Commit?
  ) -> ProofLevels {
    var levels = ProofLevels()
    let (damage, isWhole) = (report.damage.first, report.entry.isComplete)
    let areBlobsIntact = report.damagedBlobCount == 0
    levels[.intact] = Finding(
      damage == nil && areBlobsIntact,
      damage ?? (areBlobsIntact ? "every byte matches its CID" : "blobs are damaged"))
    levels[.wellFormed] = Finding(
      damage == nil && isWhole,
      damage
        ?? (isWhole
          ? "the tree keeps its rules, and all of it is here"
          : "tree nodes or records are missing"))
    (levels[.signed], levels[.identityProven]) = signature(commit, of: report.entry)
    levels[.continuous] = continuity(of: report.entry)
    levels[.complete] = completeness(of: report)
    return levels
  }

  private func completeness(of report: SnapshotVerifier.SnapshotReport) -> Finding {
    let lacking = report.blobs.unaccepted
    if lacking > 0 {
      return Finding(false, lacking == 1 ? "1 blob is missing" : "\(lacking) blobs are missing")
    }
    if let fault = report.blobs.listFault { return Finding(false, fault.sentence) }
    if !report.entry.isComplete {
      return Finding(
        false, "tree nodes or records are missing, which may refer to blobs that are not known")
    }
    if report.unreadable.mayHideBlobs {
      return Finding(false, "records that cannot be read may refer to blobs that are not known")
    }
    return Finding(
      true,
      report.blobs.accepted > 0
        ? "nothing is missing but what is accepted as lost" : "no blob is missing")
  }

  private func continuity(of entry: SnapshotHistory.Entry) -> Finding {
    guard entry.isVouched else { return Finding(nil, "no footer leads to it") }
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
      return Finding(found.allSatisfy(\.isAccepted), reasons.joined(separator: "; "))
    }
    let odd = [Standing.Doubt.behind, .future].filter(entry.standing.doubts.contains)
    return Finding(
      true,
      (firsts[entry.did] == entry.number
        ? "it is the account's first" : "it follows from the one before it")
        + odd.map { "; the account \($0)" }.joined())
  }

  // MARK: Who signed

  private mutating func signature(
    _ commit: Commit?, of entry: SnapshotHistory.Entry
  ) -> (signed: Finding, identity: Finding) {
    guard let commit else {
      let finding = Finding(nil, "the commit cannot be read")
      return (finding, finding)
    }
    if let key = terms.key {
      return (Finding(commit, by: key), Finding(nil, "the key was given, and not looked up"))
    }
    let evidence: IdentityEvidence
    do {
      evidence = try self.evidence(of: entry.did)
    } catch {
      let why = "what says who the account is cannot be read: \(error)"
      return (Finding(nil, why), Finding(false, why))
    }
    if let history = evidence.history {
      let signed = Finding(history.judge(commit, now: terms.now))
      guard signed.isHeld == true else { return (signed, signed) }
      return (signed, Finding(true, "the key follows from the DID, by the PLC directory's log"))
    }
    let identity =
      evidence.faults.first.map { Finding(false, $0) }
      ?? Finding(nil, "the archive has no history of the account's keys")
    // The newest document of the time that names a key, or, if none did, the first after it.
    let documents = evidence.documents
    let known = documents.partitioningIndex { $0.snapshot > entry.number }
    let namesKey = { (entry: IdentityEvidence.Document) in entry.document?.signingKey != nil }
    let place =
      documents[..<known].lastIndex(where: namesKey)
      ?? documents[known...].firstIndex(where: namesKey)
    if let place, let document = documents[place].document {
      return (Finding(document.judge(commit, now: terms.now)), identity)
    }
    let why =
      entry.standing.doubts.contains(.unsigned)
      ? "no key of the account was known when it was backed up"
      : "the archive does not say which key the account had"
    return (Finding(nil, why), identity)
  }

  private mutating func evidence(of did: DID) throws -> IdentityEvidence {
    let found = evidence[did] ?? Result { try IdentityEvidence(of: did, history, in: reader) }
    evidence[did] = found
    return try found.get()
  }
}
