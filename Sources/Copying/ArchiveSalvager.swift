package import ATProtocol
package import Archive
package import Files
package import IPLD
package import Snapshots

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
package struct ArchiveSalvager {
  /// What became of a snapshot.
  package struct Outcome: Sendable {
    /// The account.
    package let did: DID
    /// The revision.
    package let rev: TID?
    /// Its manifest in the damaged archive; nil if that was lost.
    package let old: CID?
    /// Its manifest in the new one.
    package let new: CID
    /// Whether a footer of the damaged archive leads to it.
    package let isVouched: Bool
    /// What could not be saved of it.
    package let loss: SnapshotLoss

    /// Whether it lost nothing.
    package var isWhole: Bool { loss.isNone }
  }

  /// The result of salvaging.
  package struct Report: Sendable {
    /// How many sections could not be saved, as far as that is known.
    package internal(set) var lostSectionCount: UInt64 = 0
    /// The CIDs of those of them that are known, the first thousand.
    package internal(set) var lostSections: [CID] = []
    /// Why snapshots are lost altogether.
    package internal(set) var lostSnapshots: [String] = []
    /// The snapshots that were saved, the oldest first.
    package internal(set) var snapshots: [Outcome] = []
    /// What is in the new archive.
    package internal(set) var generation: Generation?

    /// Whether nothing was lost.
    package var isWhole: Bool {
      lostSectionCount == 0 && lostSnapshots.isEmpty && snapshots.allSatisfy(\.isWhole)
    }
  }

  /// Salvages an archive.
  ///
  /// - Parameters:
  ///   - reader: the damaged archive.
  ///   - storage: where the new one is written; what is there is thrown away.
  ///   - provenance: by whom, for a snapshot whose manifest is lost.
  ///   - level: the zstd level.
  ///   - observer: receives progress.
  /// - Throws: ``SnapshotError/noSnapshot`` if no manifest is left and no repository either;
  ///   `ArchiveError` if the new archive cannot be written.
  package static func salvage(
    _ reader: ArchiveReader, into storage: any ArchiveStorage,
    by provenance: SnapshotBuilder.Provenance,
    level: Int = 3, observer: @escaping Progress.Observer = { _ in }
  ) throws -> Report {
    let history = try SnapshotHistory(of: reader.surveyed())
    return try salvage(
      SourceArchive(damaged: history.reader, history), history.entries.map { ChainLink($0) },
      into: storage, by: provenance, level: level, observer: observer)
  }

  /// Salvages these snapshots of an archive.
  package static func salvage(
    _ source: SourceArchive, _ links: [ChainLink], into storage: any ArchiveStorage,
    by provenance: SnapshotBuilder.Provenance, level: Int = 3,
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Report {
    let reader = source.reader
    var report = Report()
    report.lostSnapshots = source.history.breaks.map { "\($0)" }
    var found: ArchivedSnapshot?
    if links.isEmpty {
      found = try ArchivedSnapshot.salvaged(from: reader, by: provenance)
      report.lostSnapshots.append("the newest manifest is lost, and with it when it was made")
    }
    let links = ChainLink.chain(links)
    let oldest = try links.first.map { try ArchivedSnapshot($0.manifest, in: reader) } ?? found
    var copier = try SnapshotCopier(
      [source], into: storage, carHeader: oldest?.snapshot.car.header ?? reader.carHeader,
      level: level, isSalvage: true, observer: observer)
    var wholeLosses: [DID: ChainLink] = [:]
    func copy(_ archived: ArchivedSnapshot, isVouched: Bool, strays: [CID]? = nil) throws {
      let (new, loss) = try copier.copy(
        archived, from: 0, isVouched: isVouched, strays: strays)
      if let new {
        report.snapshots.append(
          Outcome(
            did: archived.snapshot.did, rev: archived.snapshot.rev, old: archived.cid, new: new,
            isVouched: isVouched, loss: loss))
      } else {
        let name = archived.cid.map { "the snapshot \($0) of" } ?? "the newest snapshot of"
        let rev = archived.snapshot.rev.map { " at \($0)" } ?? ""
        report.lostSnapshots.append(
          "\(name) \(archived.snapshot.did)\(rev): \(loss.whole ?? "")")
      }
    }
    if let found { try copy(found, isVouched: true) }
    for link in links {
      let archived = try ArchivedSnapshot(link.manifest, in: reader)
      let savedCount = report.snapshots.count
      try copy(archived, isVouched: link.isVouched)
      if report.snapshots.count == savedCount { wholeLosses[archived.snapshot.did] = link }
    }
    let saved = Set(report.snapshots.map(\.did))
    for link in links {
      let archived = try ArchivedSnapshot(link.manifest, in: reader)
      let did = archived.snapshot.did
      guard !saved.contains(did), wholeLosses[did]?.manifest == link.manifest else { continue }
      try copy(
        archived, isVouched: link.isVouched,
        strays: archived.strays(source.history) { _ in false })
    }
    try copier.sections.copyRest(of: 0)
    report.generation = try copier.finish()
    report.lostSectionCount = copier.sections.lostCount
    report.lostSections = copier.sections.lost
    return report
  }
}

extension ArchivedSnapshot {
  /// What is left of a repository without a manifest, described by who found it, and when.
  fileprivate static func salvaged(
    from reader: ArchiveReader, by provenance: SnapshotBuilder.Provenance
  ) throws -> ArchivedSnapshot {
    var snapshot = try salvaged(from: reader).snapshot
    snapshot.createdAt = provenance.createdAt
    snapshot.tool = provenance.tool
    snapshot.hostSystem = provenance.hostSystem
    return ArchivedSnapshot(found: snapshot, in: reader)
  }
}
