internal import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Snapshots
package import Verification

/// Repairs an archive in place, and names every snapshot that is whole and that no footer leads to
/// any more.
///
/// ``run(_:from:limits:keepsOrdinals:progress:)`` repairs indexes and footers, and writes lost
/// sections again that another archive has. A snapshot that was listed before, and is not on the
/// chain of manifests afterwards, is put into the chain by one more generation and marked as found;
/// the archive head stays what a footer vouches for. Snapshots that were lost with their manifests
/// are taken over from other archives. The final state is verified.
extension ArchiveRepair {
  /// What was done, and the result.
  package struct Outcome: Sendable {
    /// What was done to indexes and footers.
    package let archive: Report
    /// How many snapshots were found and named.
    package let namedCount: Int
    /// How many snapshots were taken over from other archives.
    package let takenCount: Int
    /// The snapshots that were listed before, and could not be kept.
    package let lost: [LostSnapshot]
    /// The result of verifying the archive.
    package let verification: SnapshotVerifier.Report

    /// Whether every snapshot that is left is whole, and yet the archive is damaged: what nothing
    /// needs is lost, a whole snapshot with its manifest, or only the order of its blocks.
    package let isWholeApart: Bool

    /// The first thing that is still damaged; nil if nothing is.
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
  ///   - verifier: Verifies the result.
  ///   - observer: Called with the progress.
  /// - Throws: `ArchiveError` if it is not an archive, needs a later version, or cannot be written;
  ///   what was written until then is valid, and another repair continues. Also, before anything is
  ///   written, if no other archive is given and an end that was committed is damaged.
  package static func repair(
    _ storage: any ArchiveStorage, from sources: [ArchiveReader] = [],
    limits: ArchiveLimits = ArchiveLimits(), verifier: SnapshotVerifier = SnapshotVerifier(),
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Outcome {
    try storage.lock()
    if let verification = try verifyIntact(storage, limits, verifier) {
      return Outcome(
        archive: Report(), namedCount: 0, takenCount: 0, lost: [], verification: verification,
        isWholeApart: false)
    }
    let file = try storage.map()
    let damage = try file.damagedEnd(behind: ArchiveReader.lastGeneration(of: file))
    // It may come back, and nothing here can bring it back.
    if sources.isEmpty, let damage { throw damage }
    var (report, namedCount, takenCount) = (Report(), 0, 0)
    var (first, losses): ([SnapshotHistory.Entry]?, [LostSnapshot]) = (nil, [])
    var verification: SnapshotVerifier.Report
    // What is named or taken over may be what was lacking before.
    var (rounds, done) = (0, 0)
    repeat {
      (rounds, done) = (rounds + 1, namedCount + takenCount)
      let before = try ArchiveReader(storage.map(), limits: limits).surveyed()
      let history = try SnapshotHistory(of: before)
      var listed = history.entries
      first = first ?? listed
      // Whole snapshots of an unfinished write get their places with the footer that ends it.
      let keepsOrdinals = try before.mayHaveLostFooter
      let tail = try keepsOrdinals ? nil : TailSnapshots(storage)
      losses += tail?.lost ?? []
      let healedCount = report.sectionsHealed
      report = try mend(
        storage, before.survey, from: sources, limits: limits, keepsOrdinals: keepsOrdinals,
        choosing: tail.map { $0.choose }, after: report
      ) { done, total in
        observer(Progress(stage: "examining", done: done, total: total))
      }
      if report.sectionsHealed > healedCount {
        // A manifest that was lost may be there again, and no footer may lead to it.
        let healed = try ArchiveReader(storage.map(), limits: limits).surveyed()
        let known = Set(listed.map(\.cid))
        listed += try SnapshotHistory(of: healed).entries.filter { !known.contains($0.cid) }
      }
      func verified() throws -> SnapshotVerifier.Report {
        try verifier.verify(ArchiveReader(storage.map(), limits: limits), .full)
      }
      verification = try verified()
      report.note(report.wasDamaged ? verification.archive : nil)
      // If nothing is damaged, what a snapshot lacks was never there; otherwise damage may be why.
      let doubtful = report.firstLost == nil ? Set(listed.map(\.cid)) : []
      let newCount = try SnapshotHistory.putFound(
        listed, doubtful: doubtful, into: storage, limits: limits, losses: &losses)
      namedCount += newCount
      if newCount > 0 { verification = try verified() }
      if verification.verdict == .damaged || report.wasDamaged || report.bytesCutOff > 0 {
        takenCount += try takeOver(
          from: sources, into: storage, instead: verification.damagedSnapshots, limits, observer)
      }
    } while namedCount + takenCount > done && rounds < maximumRounds
    let after = try SnapshotHistory(of: ArchiveReader(storage.map(), limits: limits))
    // Those that were in the chain before, marked as found, are not counted again.
    let marked = Set(first?.filter { $0.isCommitted && !$0.isVouched }.map(\.member) ?? [])
    let named = after.entries.count { !$0.isVouched && !marked.contains($0.member) }
    return Outcome(
      archive: report, namedCount: named, takenCount: takenCount,
      lost: after.losses(since: first ?? [], named: losses), verification: verification,
      isWholeApart: try after.reader.file.damaged(in: 0..<after.reader.fileSize).isEmpty
        && isWholeApart(verification, after.reader))
  }

  /// Whether every snapshot that is left is whole, though the archive is damaged: no blob and no
  /// extra of any is lost, and its tree is whole.
  private static func isWholeApart(
    _ verification: SnapshotVerifier.Report, _ reader: ArchiveReader
  ) throws -> Bool {
    guard verification.verdict == .damaged, !verification.snapshots.isEmpty else { return false }
    let damaged = Set(verification.archive.damagedSections)
    var examiner = SnapshotExaminer(reader)
    return try verification.snapshots.allSatisfy { snapshot in
      let manifest = snapshot.entry.cid
      let extras = try unlessDamaged { try ArchivedSnapshot(manifest, in: reader).extras() }
      guard snapshot.damagedBlobCount == 0, let extras, damaged.isDisjoint(with: extras) else {
        return false
      }
      return try snapshot.verdict != .damaged || examiner.state(of: manifest).isWhole
    }
  }

  /// Verifies an archive, hashing it once.
  ///
  /// - Returns: The result; nil if something has to be repaired.
  private static func verifyIntact(
    _ storage: any ArchiveStorage, _ limits: ArchiveLimits, _ verifier: SnapshotVerifier
  ) throws -> SnapshotVerifier.Report? {
    let reader = try ArchiveReader(storage.map(), limits: limits)
    guard reader.generation.number > 0, reader.recovery == nil,
      try reader.verify(.quick).findings.isEmpty
    else { return nil }
    let verification = try verifier.verify(reader, .full)
    guard verification.verdict != .damaged, verification.archive.findings.isEmpty,
      verification.snapshots.allSatisfy(\.entry.isCommitted)
    else { return nil }
    return verification
  }

  /// Copies the snapshots that are damaged, or lost with their manifests, from another archive that
  /// has them.
  ///
  /// Where the chain of manifests is broken, lost are all that are not here. Otherwise nothing
  /// tells what was here: they are those that follow the newest one which is.
  ///
  /// - Parameter damaged: The manifests of the snapshots that are damaged.
  /// - Returns: How many.
  private static func takeOver(
    from sources: [ArchiveReader], into storage: any ArchiveStorage, instead damaged: Set<CID>,
    _ limits: ArchiveLimits, _ observer: @escaping Progress.Observer
  ) throws -> Int {
    guard !sources.isEmpty else { return 0 }
    let history = try SnapshotHistory(
      of: ArchiveReader(storage.map(), limits: limits, ignoresTail: true))
    guard history.reader.generation.number > 0 else { return 0 }
    let isBroken = history.breaks.contains(where: \.isOfManifest)
    func content(_ entry: SnapshotHistory.Entry, _ reader: ArchiveReader) throws -> CID {
      try ArchivedSnapshot.manifest(entry.cid, in: reader).content(countsBlobs: false)
    }
    // The snapshots that are here, by what they say, until one is taken that says the same.
    var known: [CID: CID?] = [:]
    for entry in history.entries { known[try content(entry, history.reader)] = entry.cid }
    var archives: [SourceArchive] = []
    // What is taken, by the manifest in whose place it comes.
    var taken: [CID: ChainLink] = [:]
    var all = history
    for (source, reader) in sources.enumerated() {
      let other = try SnapshotHistory(of: reader)
      archives.append(SourceArchive(damaged: other.reader, other))
      var examiner = SnapshotExaminer(other.reader)
      var (lost, isKin): ([SnapshotHistory.Entry], Bool) = ([], history.entries.isEmpty)
      for entry in other.entries {
        let says = try content(entry, other.reader)
        guard let own = known.updateValue(nil, forKey: says) else {
          lost.append(entry)
          continue
        }
        isKin = true
        if !isBroken { lost = [] }
        if let own, damaged.contains(own), try examiner.state(of: entry.cid).isWhole {
          taken[own] = ChainLink(entry, source: source)
        }
      }
      guard isKin else { continue }
      all.place(lost)
      for entry in lost { taken[entry.cid] = ChainLink(entry, source: source) }
    }
    guard !taken.isEmpty else { return 0 }
    let own = SourceArchive(damaged: history.reader, history)
    var copier = try SnapshotCopier(
      archives, appendingTo: storage, keepsPrivateData: Set(all.entries.map(\.did)).count == 1,
      observer: observer)
    var (orders, count) = (ResolvedOrders(), 0)
    do {
      for link in ChainLink.chain(all.entries.map { ChainLink($0) }) {
        if let better = taken[link.manifest] {
          let archived = try ArchivedSnapshot(
            better.manifest, in: archives[better.source].reader)
          let copy = try copier.copy(archived, from: better.source, isVouched: link.isVouched)
          if copy.new != nil { count += 1 }
        } else {
          try copier.keep(link, of: own, &orders)
        }
      }
      if count > 0 { _ = try copier.finish() } else { try copier.writer.abandon() }
    } catch {
      // What cannot be cut off is a tail that readers ignore.
      do { try copier.writer.abandon() } catch _ {}
      throw error
    }
    return count
  }
}
