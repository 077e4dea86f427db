package import Archive
package import Files
internal import Snapshots
package import SystemPackage

/// Writes an archive again without what no snapshot needs, and replaces the old file.
///
/// What goes: sections that only forgotten snapshots needed, or an interrupted write left;
/// manifests that were made again; index segments that were merged into others; all footers but
/// one. Every snapshot stays.
///
/// 1. The old file is not written to, and keeps its name until the new one has been verified.
/// 2. It is locked meanwhile, and must still be in its place before it is replaced.
extension ArchiveCopier {
  /// The result of compacting.
  package struct CompactReport: Sendable {
    /// How many snapshots there are.
    package let snapshotCount: Int
    /// How many bytes the old file has.
    package let oldSize: UInt64
    /// How many sections it has.
    package let oldSectionCount: UInt64
    /// How many of these no snapshot needs.
    package let leftOutCount: Int
    /// What is in the new file.
    package let generation: Generation
    /// Whether the new file was put in place; false if everything is needed and it would not be
    /// smaller.
    package let isReplaced: Bool
  }

  /// Compacts the archive at `path` in place.
  ///
  /// - Parameters:
  ///   - path: the archive; of a link, the file it leads to is replaced.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new one is; `ArchiveError` if another process is
  ///   writing to it, or the new one cannot be written. The archive is unchanged then.
  package func compact(_ path: FilePath, willWrite: (FilePath) -> Void = { _ in }) throws
    -> CompactReport
  {
    let old = try FileStorage.open(path)
    return try withExtendedLifetime(old) {
      let size = try old.size
      let archive = try SourceArchive(
        ArchiveReader(try old.map(), limits: limits), name: path.string)
      let target = try AtomicFile(AtomicFile.resolved(path), replacing: true)
      return try copy(archive, to: target, willWrite) { generation, leftOutCount in
        guard try old.size == size, try old.isInPlace else {
          throw ArchiveError(.changedMeanwhile)
        }
        // What nobody needs goes, even if the rest, in another order, does not compress as well.
        guard leftOutCount > 0 || generation.committedLength < size else { return false }
        try target.takeMode(of: path)
        return true
      }
    }
  }

  /// Writes the compacted archive to another file.
  ///
  /// - Parameters:
  ///   - path: the archive, which is only read.
  ///   - target: the other file.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: as ``compact(_:willWrite:)`` does.
  package func compact(
    _ path: FilePath, to target: AtomicFile, willWrite: (FilePath) -> Void = { _ in }
  ) throws -> CompactReport {
    let archive = try SourceArchive(
      try ArchiveReader(path: path, limits: limits), name: path.string)
    return try copy(archive, to: target, willWrite) { _, _ in true }
  }

  private func copy(
    _ archive: SourceArchive, to target: AtomicFile, _ willWrite: (FilePath) -> Void,
    isWanted: (Generation, Int) throws -> Bool
  ) throws -> CompactReport {
    let links = archive.history.entries.map { ChainLink($0) }
    return try copy(links, of: [archive], to: target, willWrite) {
      generation, leftOutCount in
      let isReplaced = try isWanted(generation, leftOutCount)
      if isReplaced { try target.publishArchive() } else { target.discard() }
      return CompactReport(
        snapshotCount: links.count, oldSize: archive.reader.fileSize,
        oldSectionCount: archive.reader.generation.sectionCount, leftOutCount: leftOutCount,
        generation: generation, isReplaced: isReplaced)
    }
  }
}
