internal import ATProtocol
package import Archive
internal import Files
package import IPLD

/// Snapshots that were found in a file though no sound footer leads to them.
extension SnapshotHistory {
  /// Puts them into the chain of manifests, by appending a generation.
  ///
  /// The manifests of those that were found say `unvouched` from then on.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first, those that were found in their places.
  ///   - archive: where they are.
  ///   - reordered: the orders of those whose manifests name other sections than theirs.
  ///   - writer: the same archive, open for appending, with the ordinals that its reader has.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest cannot be read; what the writer
  ///   throws. What was appended then is left to the caller to abandon.
  /// - Returns: what is committed; nil if the chain names all of them already.
  package static func nameFound(
    _ links: [ChainLink], in archive: SourceArchive,
    reordered: [CID: SnapshotState.Reordered] = [:], with writer: inout ArchiveWriter
  ) throws -> Generation? {
    var chain = try ManifestChain()
    var orders = ResolvedOrders()
    for link in ChainLink.chain(links) {
      try chain.append(
        link, in: archive, &orders, as: reordered[link.manifest], toleratesDamage: true)
    }
    guard let head = chain.head, head != writer.generation?.head?.cid else { return nil }
    return try chain.end(&writer)
  }

  /// Puts snapshots that were listed before something was done to an archive into its chain of
  /// manifests, those that are not listed any more.
  ///
  /// - Parameters:
  ///   - listed: what was listed before.
  ///   - doubtful: those that are put there only if they are whole; see ``unfinished``.
  ///   - storage: the archive, which is locked.
  ///   - limits: how much it may hold.
  ///   - losses: receives those that are not whole, and could not be kept.
  /// - Throws: `ArchiveError` if it cannot be read or written; ``BackupError``.
  /// - Returns: How many were put into the chain.
  package static func putFound(
    _ listed: [SnapshotHistory.Entry], doubtful: Set<CID>, into storage: any ArchiveStorage,
    limits: ArchiveLimits = ArchiveLimits(), losses: inout [LostSnapshot]
  ) throws -> Int {
    let opened = try ArchiveReader(storage.map(), limits: limits, ignoresTail: true)
    guard opened.generation.number > 0, !listed.isEmpty else { return 0 }
    let history = try SnapshotHistory(of: opened)
    let reader = history.reader
    var missing: [SnapshotHistory.Entry] = []
    var reordered: [CID: SnapshotState.Reordered] = [:]
    var examiner = SnapshotExaminer(reader)
    for entry in try self.missing(listed, history, reader) {
      let state = try examiner.state(of: entry.cid)
      if let lack = state.lack, doubtful.contains(entry.cid) {
        losses.append(LostSnapshot(entry, lack))
      } else {
        missing.append(entry)
        reordered[entry.cid] = try state.reordered(ArchivedSnapshot(entry.cid, in: reader))
      }
    }
    guard !missing.isEmpty else { return 0 }
    for index in missing.indices { missing[index].isCommitted = false }
    var all = history
    all.place(missing)
    let vouched = Set(history.entries.filter(\.isVouched).map(\.cid))
    let links = all.entries.map { entry in
      var link = ChainLink(entry)
      link.isVouched = vouched.contains(entry.cid)
      return link
    }
    var writer = try ArchiveWriter.reopen(storage)
    let generation = try writer.orAbandon { writer in
      try nameFound(
        links, in: SourceArchive(damaged: reader, history), reordered: reordered, with: &writer)
    }
    return generation == nil ? 0 : missing.count
  }

  /// The snapshots among these that an unfinished write has left.
  ///
  /// The power may have failed before their blocks reached the medium. If a footer was after them,
  /// they were complete once, and what they lack is damage.
  package var unfinished: Set<CID> {
    get throws {
      guard try !reader.mayHaveLostFooter else { return [] }
      return Set(
        try entries.filter { try !$0.isCommitted && !reader.isCommitted($0.cid) }.map(\.cid))
    }
  }

  /// The snapshots listed before that are not listed now, nor rebuilt.
  private static func missing(
    _ listed: [SnapshotHistory.Entry], _ history: SnapshotHistory, _ reader: ArchiveReader
  ) throws -> [SnapshotHistory.Entry] {
    var contents = ManifestContents(reader, history.entries)
    let known = Set(history.entries.map(\.cid))
    return try listed.filter { entry in
      guard !known.contains(entry.cid) else { return false }
      // What cannot be read is not made again either.
      guard let snapshot = try? ArchivedSnapshot.manifest(entry.cid, in: reader) else {
        return true
      }
      return try contents.same(as: snapshot) == nil
    }
  }
}
