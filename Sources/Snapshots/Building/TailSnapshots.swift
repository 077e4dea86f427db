internal import ATProtocol
package import Archive
internal import Files
package import IPLD

/// The snapshots that an interrupted write has left behind the last footer, and what becomes of
/// each when an archive is opened to append to it.
///
/// Each that is whole is put into the chain of manifests, in its place: with the footer that ends
/// the interrupted write, so that an interruption in between loses nothing. Any other is named as
/// lost.
package struct TailSnapshots {
  /// What was listed before anything was written.
  let before: SnapshotHistory
  /// What there is of those that were found, by their manifests, with the ordinals of ``before``.
  private var states: [CID: SnapshotState] = [:]
  /// Those that cannot be kept.
  package private(set) var lost: [LostSnapshot] = []

  fileprivate var found: [SnapshotHistory.Entry] { before.entries.filter { !$0.isCommitted } }

  /// The snapshots that are found behind the last footer of an archive; nil if there are none.
  package init?(_ storage: any ArchiveStorage) throws {
    guard try storage.size > 0 else { return nil }
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(storage.map())
    } catch let error as ArchiveError where error.faultKind != .system {
      // Opening it to write says what is wrong.
      return nil
    }
    guard reader.generation.number > 0, reader.recovery?.interruptedTail ?? 0 > 0 else {
      return nil
    }
    before = try SnapshotHistory(of: reader)
    guard !found.isEmpty else { return nil }
    var examiner = SnapshotExaminer(before.reader)
    for entry in found {
      let state = try examiner.state(of: entry.cid)
      states[entry.cid] = state
      if let lack = state.lack { lost.append(LostSnapshot(entry, lack)) }
    }
  }

  /// Decides which of them count.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest cannot be read; `ArchiveError`.
  package func choose(_ adopted: ArchiveReader, _ newest: CID?) throws -> (
    sections: [Block], head: CID
  )? {
    let kept = before.entries.filter { $0.isCommitted || states[$0.cid]?.isWhole == true }
    let follows = try chain(from: newest)
    let isWritten = found.allSatisfy { entry in
      if case .whole(.written) = states[entry.cid] { true } else { false }
    }
    let isUnmoved = adopted.sectionCount == before.reader.sectionCount
    // What the tail comes to by itself is all that there is.
    if isWritten, isUnmoved, Array(kept.suffix(follows.count).map(\.cid)) == follows,
      kept.dropLast(follows.count).allSatisfy(\.isCommitted)
    {
      return nil
    }
    guard kept.contains(where: { !$0.isCommitted }) else {
      return adopted.generation.head.map { ([], $0.cid) }
    }
    let archive = SourceArchive(damaged: before.reader, before)
    var chain = try ManifestChain()
    var orders = ResolvedOrders()
    for var link in ChainLink.chain(kept.map { ChainLink($0) }) {
      if follows.contains(link.manifest) { link.isVouched = true }
      let state = states[link.manifest]
      try chain.append(
        link, in: archive, &orders, as: try state.map { try order($0, of: link.manifest, adopted) },
        toleratesDamage: true)
    }
    return try chain.head.map { (try chain.blocks, $0) }
  }

  /// The manifests of the tail that lead from the newest to one that is committed, the oldest
  /// first.
  private func chain(from newest: CID?) throws -> [CID] {
    let entries = Dictionary(
      before.entries.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
    var (chain, next): ([CID], CID?) = ([], newest)
    while let cid = next, let entry = entries[cid], !entry.isCommitted {
      chain.append(cid)
      next = entry.previous
    }
    return chain.reversed()
  }

  /// The order of a snapshot that is whole, by the ordinals that its sections get, and what its
  /// manifest says of the CAR in that order.
  private func order(
    _ state: SnapshotState, of manifest: CID, _ adopted: ArchiveReader
  ) throws -> SnapshotState.Reordered {
    let archived = try ArchivedSnapshot(manifest, in: before.reader)
    var (order, car) = try state.reordered(archived) ?? (archived.order(), archived.snapshot.car)
    if adopted.sectionCount != before.reader.sectionCount {
      let old = order
      order = BlockOrder()
      for ordinal in old.runs.joined() {
        let cid = try before.reader.section(at: ordinal).cid
        guard let place = try adopted.ordinal(of: cid) else {
          throw SnapshotError.blockMissing(cid)
        }
        order.append(place)
      }
    }
    return (order, car)
  }
}

extension ArchiveWriter {
  /// Opens an archive to append snapshots to it.
  ///
  /// What an interrupted write has left is adopted. A whole snapshot among it is put into the chain
  /// of manifests, where it does not become the newest marked as found.
  ///
  /// - Parameters:
  ///   - storage: the archive.
  ///   - carHeader: the CAR header with which an archive begins.
  ///   - options: how.
  ///   - losses: receives the snapshots that were found and cannot be kept.
  /// - Throws: as ``open(_:carHeader:options:choosing:)`` does, but that an archive whose only
  ///   footers are damaged is not called something else; ``BackupError``.
  package static func openNaming(
    _ storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions = ArchiveOptions(),
    losses: inout [LostSnapshot]
  ) throws -> ArchiveWriter {
    try storage.lock()
    let found = options.startsOver ? nil : try TailSnapshots(storage)
    do {
      let writer = try open(
        storage, carHeader: carHeader, options: options, choosing: found.map { $0.choose })
      if let found, let reader = writer.reader {
        // Of a damaged end of which nothing is adopted, all stays what it is.
        let named =
          writer.isBehindDamage && writer.adoptedSectionCount == 0
          ? found.found.map { LostSnapshot($0, "it stays in an end that is damaged") } : found.lost
        losses += try SnapshotHistory(of: reader).losses(
          since: found.before.entries, named: named)
      }
      return writer
    } catch let error as ArchiveError
      where error.reason == .notAnArchive || error.reason == .begunOtherwise
    {
      guard try !ArchiveReader.hasTraces(in: storage.map()) else { throw ArchiveError(.noFooter) }
      throw error
    }
  }
}
