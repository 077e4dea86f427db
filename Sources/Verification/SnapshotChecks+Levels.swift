internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots

/// What is proven of a snapshot, by what the archive itself holds.
///
/// The evidence about an account is read and checked once for all of its snapshots.
extension SnapshotChecks {
  private typealias Finding = ProofLevels.Finding

  /// The levels of a snapshot that was verified.
  ///
  /// - Parameters:
  ///   - report: what was found.
  ///   - commit: its commit; nil if that cannot be read.
  ///   - terms: by what they are judged.
  mutating func levels(
    of report: SnapshotVerifier.SnapshotReport, _ commit: Commit?, _ terms: ProofTerms
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
          ? "the tree is valid and complete"
          : "tree nodes or records are missing"))
    (levels[.signed], levels[.identityProven]) = signature(commit, of: report.entry, terms)
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
      let what = history.sentence(kind, after: before)
      return isAccepted ? "\(what), which was accepted" : what
    }
    guard reasons.isEmpty else {
      return Finding(found.allSatisfy(\.isAccepted), reasons.joined(separator: "; "))
    }
    if isOneLost(before: entry) {
      return Finding(nil, "a snapshot before it is lost, so it is not known what it follows from")
    }
    let odd = [Standing.Doubt.behind, .future].filter(entry.standing.doubts.contains)
    return Finding(
      true,
      (firsts[entry.did] == entry.number
        ? "it is the account's first snapshot" : "it follows from the one before it")
        + odd.map { "; the account \($0)" }.joined())
  }

  /// Whether a snapshot is lost between this one and the account's snapshot before it.
  ///
  /// It may have been of any account.
  private func isOneLost(before entry: SnapshotHistory.Entry) -> Bool {
    let followers = Set(history.breaks.filter(\.isOfManifest).compactMap(\.after))
    guard !followers.isEmpty else { return false }
    let between = history.entries[..<entry.number].reversed().prefix {
      $0.number == entry.number || $0.did != entry.did
    }
    return between.contains { followers.contains($0.cid) }
  }

  // MARK: Who signed

  private mutating func signature(
    _ commit: Commit?, of entry: SnapshotHistory.Entry, _ terms: ProofTerms
  ) -> (signed: Finding, identity: Finding) {
    guard let commit else {
      let finding = Finding(nil, "the commit cannot be read")
      return (finding, finding)
    }
    if let flaw = commit.flaw {
      let finding = Finding(false, "\(flaw)")
      return (finding, finding)
    }
    if let key = terms.key {
      return (Finding(commit, by: key), Finding(nil, "the key was given, not looked up"))
    }
    let evidence: IdentityEvidence
    do {
      evidence = try self.evidence(of: entry.did)
    } catch {
      let why = "the account's identity documents cannot be read: \(error)"
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
    let found =
      evidence[did] ?? Result { try IdentityEvidence(of: did, history, in: history.reader) }
    evidence[did] = found
    return try found.get()
  }
}
