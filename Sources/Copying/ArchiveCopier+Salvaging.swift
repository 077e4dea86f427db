package import ATProtocol
package import Archive
package import Files
package import IPLD
package import Snapshots
package import SystemPackage

/// Makes a new archive of what is left of a damaged one.
///
/// Every snapshot comes first with what is left of it, then every other intact section, whether a
/// snapshot needs it or not. A snapshot that lost nothing is what it was, its CAR bit for bit.
/// Otherwise its CAR is what is left, and its manifest says so: `complete`, the figures, and which
/// blobs and extras were lost. A snapshot whose commit or root of the tree is lost has no manifest
/// any more; but of an account of which nothing else is left, the newest keeps it. Its blobs, to
/// which no record refers any more, are extras then.
///
/// 1. The damaged archive is only read.
/// 2. Nothing is in the new one that does not hash to its CID.
extension ArchiveCopier {
  /// What became of a snapshot: the account and the revision; its manifest in the damaged archive,
  /// nil if that was lost, and in the new one; whether a footer of the damaged archive leads to it;
  /// and what could not be saved of it.
  package typealias SalvagedSnapshot = (
    did: DID, rev: TID?, old: CID?, new: CID, isVouched: Bool, loss: SnapshotLoss
  )

  /// The result of salvaging.
  package struct SalvageReport: Sendable {
    /// How many sections could not be saved, as far as that is known.
    package internal(set) var lostSectionCount: UInt64 = 0
    /// The CIDs of those of them that are known, the first thousand.
    package internal(set) var lostSections: [CID] = []
    /// Why snapshots are lost altogether.
    package internal(set) var lostSnapshots: [String] = []
    /// The snapshots that were saved, the oldest first.
    package internal(set) var snapshots: [SalvagedSnapshot] = []
    /// What is in the new archive.
    package internal(set) var generation: Generation?

    /// Whether nothing was lost.
    package var isWhole: Bool {
      lostSectionCount == 0 && lostSnapshots.isEmpty && snapshots.allSatisfy(\.loss.isNone)
    }
  }

  /// Salvages an archive into a file, which is discarded if anything fails.
  ///
  /// - Parameters:
  ///   - reader: the damaged archive.
  ///   - target: the new file.
  ///   - provenance: by whom, for a snapshot whose manifest is lost.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: as the other does; what of `reader` could not be fetched.
  package func salvage(
    _ reader: ArchiveReader, to target: AtomicFile, by provenance: SnapshotBuilder.Provenance,
    willWrite: (FilePath) -> Void
  ) throws -> SalvageReport {
    do {
      let new = try target.storage()
      willWrite(target.temporaryPath)
      let report = try salvage(reader, into: new, by: provenance)
      // What could not be fetched is not lost.
      try reader.checkFetched()
      try target.publishArchive()
      return report
    } catch {
      target.discard()
      throw error
    }
  }

  /// Salvages an archive.
  ///
  /// - Parameters:
  ///   - reader: the damaged archive.
  ///   - links: the snapshots that are saved, the oldest first; nil for all.
  ///   - storage: where the new one is written; what is there is thrown away.
  ///   - provenance: by whom, for a snapshot whose manifest is lost.
  /// - Throws: ``SnapshotError/noSnapshot`` if no manifest is left and no repository either;
  ///   `ArchiveError` if the new archive cannot be written.
  package func salvage(
    _ reader: ArchiveReader, _ links: [ChainLink]? = nil, into storage: any ArchiveStorage,
    by provenance: SnapshotBuilder.Provenance
  ) throws -> SalvageReport {
    let history = try SnapshotHistory(of: reader.surveyed())
    let (reader, source) = (history.reader, SourceArchive(damaged: history.reader, history))
    let links = ChainLink.chain(links ?? history.entries.map { ChainLink($0) })
    var report = SalvageReport()
    report.lostSnapshots = history.breaks.map { "\($0)" }
    var found: ArchivedSnapshot?
    if links.isEmpty {
      var snapshot = try ArchivedSnapshot.salvaged(from: reader).snapshot
      (snapshot.createdAt, snapshot.tool) = (provenance.createdAt, provenance.tool)
      snapshot.hostSystem = provenance.hostSystem
      found = ArchivedSnapshot(found: snapshot, in: reader)
      report.lostSnapshots.append("the newest manifest is lost, and with it when it was made")
    }
    let oldest = try links.first.map { try ArchivedSnapshot($0.manifest, in: reader) } ?? found
    var copier = try SnapshotCopier(
      [source], into: storage, carHeader: oldest?.snapshot.car.header ?? reader.carHeader,
      level: level, isSalvage: true, observer: observer)
    func isSaved(
      _ archived: ArchivedSnapshot, isVouched: Bool, strays: [CID]? = nil
    ) throws -> Bool {
      let (did, rev) = (archived.snapshot.did, archived.snapshot.rev)
      let (new, loss) = try copier.copy(archived, from: 0, isVouched: isVouched, strays: strays)
      if let new {
        report.snapshots.append((did, rev, archived.cid, new, isVouched, loss))
      } else {
        let name = archived.cid.map { "the snapshot \($0) of" } ?? "the newest snapshot of"
        report.lostSnapshots.append(
          "\(name) \(did)\(rev.map { " at \($0)" } ?? ""): \(loss.whole ?? "")")
      }
      return new != nil
    }
    if let found { _ = try isSaved(found, isVouched: true) }
    // The newest of each account that is lost altogether.
    var lost: [DID: Int] = [:]
    for (place, link) in links.enumerated() {
      let archived = try ArchivedSnapshot(link.manifest, in: reader)
      if try !isSaved(archived, isVouched: link.isVouched) { lost[archived.snapshot.did] = place }
    }
    for snapshot in report.snapshots { lost[snapshot.did] = nil }
    for link in lost.values.sorted().map({ links[$0] }) {
      let archived = try ArchivedSnapshot(link.manifest, in: reader)
      _ = try isSaved(
        archived, isVouched: link.isVouched, strays: archived.strays(history) { _ in false })
    }
    try copier.copyRest(of: 0)
    report.generation = try copier.finish()
    (report.lostSectionCount, report.lostSections) = (copier.lostCount, copier.lost)
    return report
  }
}
