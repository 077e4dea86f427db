internal import ATProtocol
package import Archive
internal import Files
package import IPLD

/// Snapshots that were found in a file though no sound footer leads to them.
extension SnapshotHistory {
  /// Puts them into the chain of manifests, by appending a generation.
  ///
  /// The archive head stays the newest snapshot that a footer vouched for. The manifests of those
  /// that were found say `unvouched` from then on.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first, those that were found in their places.
  ///   - archive: where they are.
  ///   - writer: the same archive, open for appending, with the ordinals that its reader has.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest cannot be read; what the writer
  ///   throws. What was appended then is left to the caller to abandon.
  /// - Returns: what is committed; nil if the chain names all of them already.
  package static func nameFound(
    _ links: [ChainLink], in archive: SourceArchive, with writer: inout ArchiveWriter
  ) throws -> Generation? {
    let chain = try ManifestChain(links, in: archive, toleratesDamage: true)
    guard let head = chain.head, head != writer.generation?.head?.cid else { return nil }
    return try chain.end(&writer)
  }

  /// Puts snapshots that were listed before something was done to an archive into its chain of
  /// manifests, those that are not listed any more.
  ///
  /// - Parameters:
  ///   - listed: what was listed before.
  ///   - doubtful: those that are listed only if they are whole; see
  ///     ``unfinished``.
  ///   - storage: the archive, which is locked.
  ///   - limits: how much it may hold.
  /// - Throws: `ArchiveError` if it cannot be read or written; ``BackupError``.
  /// - Returns: How many were put into the chain.
  package static func putFound(
    _ listed: [SnapshotHistory.Entry], doubtful: Set<CID>, into storage: any ArchiveStorage,
    limits: ArchiveLimits = ArchiveLimits()
  ) throws -> Int {
    let opened = try ArchiveReader(storage.map(), limits: limits, ignoresTail: true)
    guard opened.generation.number > 0, !listed.isEmpty else { return 0 }
    let history = try SnapshotHistory(of: opened)
    let reader = history.reader
    let missing = try missing(listed, history, reader).filter { entry in
      try !doubtful.contains(entry.cid) || isWhole(entry.cid, in: reader)
    }
    guard !missing.isEmpty else { return 0 }
    var all = history
    all.place(missing)
    let vouched = Set(history.entries.filter(\.isVouched).map(\.cid))
    let links = all.entries.map { ChainLink($0.cid, isVouched: vouched.contains($0.cid)) }
    var writer = try ArchiveWriter.reopen(storage)
    let generation = try writer.orAbandon { writer in
      try nameFound(links, in: SourceArchive(damaged: reader, history), with: &writer)
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
      return Set(try entries.filter { try !$0.isVouched && !reader.isCommitted($0.cid) }.map(\.cid))
    }
  }

  /// Whether a snapshot's CAR can be reproduced bit for bit.
  package static func isWhole(_ manifest: CID, in reader: ArchiveReader) throws -> Bool {
    do {
      let archived = try ArchivedSnapshot(manifest, in: reader)
      do {
        try archived.readCAR { _ in }
        return true
      } catch {
        guard error.flawOfCAR != nil else { throw error }
        return try archived.recoverCAR { _ in }
      }
    } catch let error as ArchiveError where error.faultKind == .system {
      throw error
    } catch is ArchiveError, is SnapshotError {
      return false
    } catch let error as BackupError {
      // Much longer than the archive, or what else its manifest claims.
      guard case .system = error else { return false }
      throw error
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

extension ArchiveWriter {
  /// Opens an archive to append snapshots to it.
  ///
  /// What an unfinished write has left is adopted. A whole snapshot among it that does not become
  /// the newest is put into the chain of manifests, marked as found.
  ///
  /// - Throws: as ``open(_:carHeader:options:)`` does, but that an archive whose only footers are
  ///   damaged is not called something else; ``BackupError``.
  package static func openNaming(
    _ storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions
  ) throws -> ArchiveWriter {
    try storage.lock()
    let offered = options.startsOver ? nil : try offered(storage)
    var writer: ArchiveWriter
    do {
      writer = try open(storage, carHeader: carHeader, options: options)
    } catch let error as ArchiveError
      where error.reason == .notAnArchive || error.reason == .begunOtherwise
    {
      guard try !ArchiveReader.hasTraces(in: storage.map()) else { throw ArchiveError(.noFooter) }
      throw error
    }
    guard let (listed, unfinished, last) = offered else { return writer }
    // The last frame may have lacked a part of its checksum, and is cut off then.
    try writer.append(verified: last.cid, last.bytes.span)
    try writer.checkpoint()
    guard try SnapshotHistory.putFound(listed, doubtful: unfinished, into: storage) > 0 else {
      return writer
    }
    return try open(storage, carHeader: carHeader, options: options)
  }

  /// The snapshots of an archive, if some of them are found after its last footer; and of these the
  /// manifest of the last.
  private static func offered(_ storage: any ArchiveStorage) throws -> (
    listed: [SnapshotHistory.Entry], unfinished: Set<CID>, last: Block
  )? {
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
    let history = try SnapshotHistory(of: reader)
    guard let last = history.entries.last(where: { !$0.isVouched }) else { return nil }
    return (
      history.entries, try history.unfinished,
      try ArchivedSnapshot.block(last.cid, in: history.reader)
    )
  }
}
