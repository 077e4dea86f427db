internal import ATProtocol
package import Archive
internal import IPLD

/// Snapshots that were found in a file though no sound footer leads to them.
public enum FoundSnapshots {
  /// Puts them into the chain of manifests, by appending a generation.
  ///
  /// The archive head stays the newest snapshot that a footer vouched for. The manifests of those
  /// that were found say `unvouched` from then on.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first, those that were found in their places.
  ///   - archive: where they are.
  ///   - writer: the same archive, open for appending, with the ordinals that its reader has.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest cannot be read; what the writer throws.
  ///   What was appended then is left to the caller to abandon.
  /// - Returns: what is committed; nil if the chain names all of them already.
  package static func name(
    _ links: [ChainLink], in archive: SourceArchive, with writer: inout ArchiveWriter
  ) throws -> Generation? {
    let chain = try ManifestChain(links, in: archive, toleratesDamage: true)
    guard let head = chain.head, head != writer.generation?.head?.cid else { return nil }
    try chain.write(into: &writer)
    return try writer.commit(manifest: head)
  }

  /// Puts snapshots that were listed before something was done to an archive into its chain of
  /// manifests, those that are not listed any more.
  ///
  /// - Parameters:
  ///   - listed: what was listed before.
  ///   - storage: the archive, which is locked.
  ///   - limits: how much it may hold.
  /// - Throws: `ArchiveError` if it cannot be read or written; ``BackupError``.
  /// - Returns: How many were put into the chain.
  static func put(
    _ listed: [SnapshotHistory.Entry], into storage: any ArchiveStorage,
    limits: ReadLimits = ReadLimits()
  ) throws -> Int {
    let reader = try ArchiveReader(storage.map(), limits: limits, ignoresTail: true)
    guard reader.generation.number > 0, !listed.isEmpty else { return 0 }
    let history = try SnapshotHistory(of: reader)
    let found = try missing(listed, history, reader)
    guard !found.isEmpty else { return 0 }
    // In the order of the file, as they were listed.
    let places = try (history.entries.map(\.cid) + found).map {
      ($0, try reader.ordinal(of: $0) ?? 0)
    }
    let vouched = Set(history.entries.filter(\.isVouched).map(\.cid))
    let links = places.sorted { $0.1 < $1.1 }.map { cid, _ in
      ChainLink(cid, isVouched: vouched.contains(cid))
    }
    var writer = try ArchiveWriter.reopen(storage)
    do {
      let generation = try name(
        links, in: SourceArchive(damaged: reader, history), with: &writer)
      return generation == nil ? 0 : found.count
    } catch {
      // What went wrong first is what is told; a tail that cannot be cut off is one that readers ignore.
      do { try writer.abandon() } catch _ {}
      throw error
    }
  }

  /// Those of the snapshots listed before that are not listed now, nor made again.
  private static func missing(
    _ listed: [SnapshotHistory.Entry], _ history: SnapshotHistory, _ reader: ArchiveReader
  ) throws -> [CID] {
    var contents = ManifestContents(reader)
    for entry in history.entries { contents.note(entry.cid, entry.commit) }
    let known = Set(history.entries.map(\.cid))
    return listed.filter { entry in
      !known.contains(entry.cid) && contents.same(as: entry.cid, entry.commit) == nil
    }.map(\.cid)
  }
}

extension ArchiveWriter {
  /// Opens an archive to append snapshots to it.
  ///
  /// What an unfinished write has left is adopted. A whole snapshot among it that does not become
  /// the newest is put into the chain of manifests, marked as found.
  ///
  /// - Throws: as ``open(_:carHeader:options:)`` does; ``BackupError``.
  static func openNaming(
    _ storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions
  ) throws -> ArchiveWriter {
    try storage.lock()
    let listed = options.startsOver ? [] : try offered(storage)
    let writer = try open(storage, carHeader: carHeader, options: options)
    guard !listed.isEmpty, try FoundSnapshots.put(listed, into: storage) > 0 else { return writer }
    return try open(storage, carHeader: carHeader, options: options)
  }

  /// The snapshots of an archive, if some of them are found behind its last footer.
  private static func offered(_ storage: any ArchiveStorage) throws -> [SnapshotHistory.Entry] {
    guard try storage.size > 0 else { return [] }
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(storage.map())
    } catch let error as ArchiveError where !error.isOfSystem {
      // Opening it to write says what is wrong.
      return []
    }
    guard reader.generation.number > 0, reader.recovery?.interruptedTail ?? 0 > 0 else { return [] }
    let entries = try SnapshotHistory(of: reader).entries
    return entries.contains { !$0.isVouched } ? entries : []
  }
}
