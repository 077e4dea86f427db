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

  /// Compacts an archive, in place or into another file.
  ///
  /// - Parameters:
  ///   - path: the archive; of a link, the file it leads to is replaced.
  ///   - other: the other file, and then the archive is only read; nil to replace the archive.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new one is; `ArchiveError` if another process is
  ///   writing to it, or the new one cannot be written. The archive is unchanged then.
  package func compact(
    _ path: FilePath, to other: AtomicFile? = nil, willWrite: (FilePath) -> Void = { _ in }
  ) throws -> CompactReport {
    let old = try other == nil ? FileStorage.open(path) : nil
    return try withExtendedLifetime(old) {
      let size = try old?.size ?? 0
      let reader = try old.map { try ArchiveReader($0.map(), limits: limits) }
      let archive = try SourceArchive(
        reader ?? ArchiveReader(path: path, limits: limits), name: path.string)
      let target = try other ?? AtomicFile(AtomicFile.resolved(path), replacing: true)
      let links = archive.history.entries.map { ChainLink($0) }
      return try copy(links, of: [archive], to: target, willWrite) { generation, leftOutCount in
        var isReplaced = true
        if let old {
          guard try old.size == size, try old.isInPlace else {
            throw ArchiveError(.changedMeanwhile)
          }
          // What nobody needs goes, even if the rest, in another order, does not compress as well.
          isReplaced = leftOutCount > 0 || generation.committedLength < size
          if isReplaced { try target.takeMode(of: path) }
        }
        if isReplaced { try target.publishArchive() } else { target.discard() }
        return CompactReport(
          snapshotCount: links.count, oldSize: archive.reader.fileSize,
          oldSectionCount: archive.reader.generation.sectionCount, leftOutCount: leftOutCount,
          generation: generation, isReplaced: isReplaced)
      }
    }
  }
}
