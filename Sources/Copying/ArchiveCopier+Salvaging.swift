package import ATProtocol
package import Archive
package import Files
package import IPLD
package import Snapshots
package import SystemPackage
package import Verification

/// Makes a new archive of what is left of a damaged one.
///
/// Every snapshot comes first with what is left of it, then every other intact section, whether a
/// snapshot needs it or not. A snapshot that lost nothing is what it was, its CAR bit for bit.
/// Otherwise its CAR is what is left, and its manifest says so: `complete`, the figures, and which
/// blobs and extras were lost. A snapshot whose commit or root of the tree is lost has no manifest
/// any more; but of an account of which nothing else is left, each keeps it. Its blobs, to which no
/// record refers any more, are extras of the newest then. Archives that were glued together are
/// sources of their own; one that cannot be opened is a loss that is named.
///
/// 1. The damaged archive is only read.
/// 2. Nothing is in the new one that does not hash to its CID.
extension ArchiveCopier {
  /// The result for a snapshot: the account and the revision; its manifest in the damaged archive,
  /// nil if that was lost, and in the new one; whether a footer of the damaged archive leads to it;
  /// and what could not be saved of it.
  package typealias SalvagedSnapshot = (
    did: DID, rev: TID?, old: CID?, new: CID, isVouched: Bool, loss: SnapshotLoss
  )

  /// The result of salvaging.
  package struct SalvageReport: Sendable {
    /// How many sections could not be saved, as far as that is known.
    package internal(set) var lostSectionCount: UInt64 = 0
    /// The known CIDs of these, up to a thousand.
    package internal(set) var lostSections: [CID] = []
    /// How many snapshots there were, as far as that is known.
    package internal(set) var snapshotCount = 0
    /// Why snapshots are lost altogether.
    package internal(set) var lostSnapshots: [String] = []
    /// The snapshots that were saved, the oldest first.
    package internal(set) var snapshots: [SalvagedSnapshot] = []
    /// Whether some of what was saved lay in frames that do not hold.
    package internal(set) var hasReadRemains = false
    /// What is in the new archive.
    package internal(set) var generation: Generation?

    /// Whether nothing was lost.
    package var isWhole: Bool {
      lostSectionCount == 0 && lostSnapshots.isEmpty && snapshots.allSatisfy(\.loss.isNone)
    }
  }

  /// Salvages the archives of a file into another file, which is verified, and discarded if
  /// anything fails.
  ///
  /// - Parameters:
  ///   - parts: the damaged archive, and those that are glued to it.
  ///   - target: the new file.
  ///   - provenance: by whom, for a snapshot whose manifest is lost.
  ///   - verifier: verifies the new archive.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: as the other does; what of `parts` could not be fetched.
  /// - Returns: what was saved, and the result of verifying it.
  package func salvage(
    _ parts: ArchiveParts, to target: AtomicFile, by provenance: SnapshotBuilder.Provenance,
    verifier: SnapshotVerifier = SnapshotVerifier(), willWrite: (FilePath) -> Void
  ) throws -> (SalvageReport, SnapshotVerifier.Report) {
    try target.orDiscard {
      let readers = parts.readable.map(\.reader)
      let new = try target.archiveStorage(of: readers)
      willWrite(target.temporaryPath)
      let report = try salvage(parts, into: new, by: provenance)
      // What could not be fetched is not lost.
      for reader in readers { try reader.checkFetched() }
      let copy = try ArchiveReader(new.map(), limits: ArchiveLimits(allowsLarge: true))
      let verification = try verifier.verify(copy, .full)
      try publish(target)
      return (report, verification)
    }
  }

  /// Puts a new archive of everything that is left in the place of one that cannot be repaired where
  /// it lies, though each of its snapshots is whole.
  ///
  /// - Parameters:
  ///   - path: the archive; of a link, the file it leads to is replaced.
  ///   - old: the same, which is locked.
  ///   - limits: how much it may hold.
  ///   - provenance: by whom, for a snapshot whose manifest is lost.
  ///   - verifier: verifies the new archive.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: as ``salvage(_:_:into:by:)`` does, which leaves the archive as it is.
  /// - Returns: what was saved, and the result of verifying it; nil if a snapshot would be less than
  ///   it is, or the new archive would be damaged: then nothing has changed.
  package func renew(
    _ path: FilePath, _ old: any ArchiveStorage, limits: ArchiveLimits,
    by provenance: SnapshotBuilder.Provenance, verifier: SnapshotVerifier,
    willWrite: (FilePath) -> Void
  ) throws -> (SalvageReport, SnapshotVerifier.Report)? {
    let size = try old.size
    let reader = try ArchiveReader(old.map(), limits: limits)
    let before = try SnapshotHistory(of: reader).entries
    let target = try AtomicFile(AtomicFile.resolved(path), replacing: true)
    return try target.orDiscard {
      let new = try target.archiveStorage(of: [reader])
      willWrite(target.temporaryPath)
      let report = try salvage(reader, into: new, by: provenance)
      let copy = try ArchiveReader(new.map(), limits: ArchiveLimits(allowsLarge: true))
      let verification = try verifier.verify(copy, .full)
      guard report.snapshots.allSatisfy(\.loss.isNone), verification.verdict != .damaged,
        try SnapshotHistory(of: copy).losses(since: before).isEmpty
      else {
        target.discard()
        return nil
      }
      guard try old.size == size, try old.isInPlace else { throw ArchiveError(.changedMeanwhile) }
      try target.takeMode(of: path)
      try target.publishArchive()
      return (report, verification)
    }
  }

  /// Salvages the archives of the file of a reader: all of them, where several are glued together.
  ///
  /// - Throws: as the other does.
  package func salvage(
    _ reader: ArchiveReader, _ chosen: [ChainLink]? = nil, into storage: any ArchiveStorage,
    by provenance: SnapshotBuilder.Provenance
  ) throws -> SalvageReport {
    try salvage(reader.parts(), chosen, into: storage, by: provenance)
  }

  /// Salvages an archive, and other archives that are glued to it.
  ///
  /// - Parameters:
  ///   - parts: the damaged archive, and those that are glued to it.
  ///   - chosen: the snapshots of it that are saved, the oldest first; nil for all of all archives.
  ///   - storage: where the new one is written; its content is discarded.
  ///   - provenance: by whom, for a snapshot whose manifest is lost.
  /// - Throws: ``SnapshotError/noSnapshot`` if no manifest is left and no repository either;
  ///   `ArchiveError` if the new archive cannot be written.
  package func salvage(
    _ parts: ArchiveParts, _ chosen: [ChainLink]? = nil, into storage: any ArchiveStorage,
    by provenance: SnapshotBuilder.Provenance
  ) throws -> SalvageReport {
    let archives = try parts.readable.map { part in
      let history = try SnapshotHistory(of: part.reader)
      return SourceArchive(damaged: history.reader, history)
    }
    let links =
      try chosen
      ?? (archives.count == 1
        ? archives[0].history.entries.map { ChainLink($0) }
        : Self.order(archives, keepsPrivateData: true, areDamaged: true).0)
    var report = SalvageReport()
    report.lostSnapshots = archives.flatMap(\.history.breaks).map { "\($0)" }
    func lose(archiveAt offset: UInt64, _ why: any Error) {
      report.lostSnapshots.append("the archive that begins at byte \(offset): \(why)")
    }
    for (offset, error) in parts.unopened { lose(archiveAt: offset, error) }
    // The oldest first, as far as the snapshots have an order.
    var waiting: [(archived: ArchivedSnapshot, source: Int, isVouched: Bool)] = []
    var failure: any Error = SnapshotError.noSnapshot
    for (source, archive) in archives.enumerated() where archive.history.entries.isEmpty {
      var snapshot: Snapshot
      do {
        snapshot = try ArchivedSnapshot.salvaged(from: archive.reader).snapshot
      } catch let error where error.isLoss {
        failure = error
        lose(archiveAt: parts.readable[source].offset, error)
        continue
      }
      (snapshot.createdAt, snapshot.tool) = (provenance.createdAt, provenance.tool)
      snapshot.hostSystem = provenance.hostSystem
      // Nothing tells where it stands among others.
      let isOnly = links.isEmpty && waiting.isEmpty
      waiting.append((ArchivedSnapshot(found: snapshot, in: archive.reader), source, isOnly))
      report.lostSnapshots.append(
        "the newest manifest is lost, and with it the time of its snapshot")
    }
    for link in ChainLink.chain(links) {
      let archived = try ArchivedSnapshot(link.manifest, in: archives[link.source].reader)
      waiting.append((archived, link.source, link.isVouched))
    }
    guard let oldest = waiting.first?.archived else { throw failure }
    // Where no manifest is left, what is salvaged is the snapshot that one is lost of.
    report.snapshotCount =
      waiting.count
      + archives.filter { !$0.history.entries.isEmpty }
      .reduce(0) { $0 + $1.history.breaks.count(where: \.isOfManifest) }
    var copier = try SnapshotCopier(
      archives, into: storage, carHeader: oldest.snapshot.car.header, level: level,
      isSalvage: true, observer: observer)
    func isSaved(
      _ archived: ArchivedSnapshot, _ source: Int, _ isVouched: Bool, strays: [CID]? = nil
    ) throws -> Bool {
      let (did, rev) = (archived.snapshot.did, archived.snapshot.rev)
      let (new, loss) = try copier.copy(
        archived, from: source, isVouched: isVouched, strays: strays)
      if let new {
        report.snapshots.append((did, rev, archived.cid, new, isVouched, loss))
      } else {
        let name = archived.cid.map { "the snapshot \($0) of" } ?? "the newest snapshot of"
        report.lostSnapshots.append(
          "\(name) \(did)\(rev.map { " at \($0)" } ?? ""): \(loss.whole ?? "")")
      }
      return new != nil
    }
    // For an account that is lost altogether, every snapshot keeps what it has, and the newest also
    // what belongs to none.
    var lost: [Int] = []
    for (place, (archived, source, isVouched)) in waiting.enumerated() {
      if try !isSaved(archived, source, isVouched) { lost.append(place) }
    }
    let saved = Set(report.snapshots.map(\.did))
    lost.removeAll { saved.contains(waiting[$0].archived.snapshot.did) }
    let newest = Dictionary(
      lost.map { (waiting[$0].archived.snapshot.did, $0) }, uniquingKeysWith: max)
    for place in lost {
      let (archived, source, isVouched) = waiting[place]
      let isNewest = newest[archived.snapshot.did] == place
      let strays =
        isNewest ? try archived.strays(archives[source].history) { _ in false } : []
      _ = try isSaved(archived, source, isVouched, strays: strays)
    }
    for source in archives.indices { try copier.copyRest(of: source) }
    report.generation = try copier.finish()
    (report.lostSectionCount, report.lostSections) = (copier.lostCount, copier.lost)
    report.hasReadRemains = archives.contains { $0.reader.hasReadRemains }
    return report
  }
}
