public import Archive
internal import IPLD
public import SystemPackage

/// Writes an archive anew without what no snapshot needs, verifies that, and puts it in the place of the old one.
///
/// What goes: sections that only forgotten snapshots needed, or a write that never came to a snapshot; manifests that were re-made;
/// index segments that were merged into others; all footers but one. What stays: every snapshot.
///
/// 1. The old file is not written to. Until the new one has been verified it stays under its name.
/// 2. Its writer's lock is held meanwhile, and it is looked for under its name again before that is given to the new one.
public struct ArchiveCompactor {
  /// What came of it.
  public struct Report: Sendable {
    /// How many snapshots there are.
    public let snapshotCount: Int
    /// How many bytes the old file has.
    public let oldSize: UInt64
    /// How many sections it has.
    public let oldSectionCount: UInt64
    /// How many of these no snapshot needs.
    public let leftOutCount: Int
    /// What is in the new file.
    public let generation: Generation
    /// Whether the new file was put in place; false if everything is needed and it would not have been smaller.
    public let isReplaced: Bool
  }

  /// The zstd level.
  private let level: Int
  private let observer: Progress.Observer
  private let storage: (NewArchiveFile) throws -> any ArchiveStorage

  /// A compactor.
  public init(level: Int = 3, observer: @escaping Progress.Observer = { _ in }) {
    self.init(level: level, observer: observer) { try $0.storage() }
  }

  /// A compactor that writes to a storage of another kind.
  package init(
    level: Int = 3, observer: @escaping Progress.Observer = { _ in },
    storage: @escaping (NewArchiveFile) throws -> any ArchiveStorage
  ) {
    self.level = level
    self.observer = observer
    self.storage = storage
  }

  /// Compacts the archive at `path`, in its place.
  ///
  /// - Parameters:
  ///   - path: the archive; where it is a link, the file it leads to is what is replaced.
  ///   - willWrite: is told the name of the temporary file once it is there.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged; ``BackupError/copyFailed(_:)`` if the new one is; `ArchiveError` if
  ///   another process is writing to it, or the new one cannot be written. The archive is as it was then.
  public func compact(_ path: FilePath, willWrite: (FilePath) -> Void = { _ in }) throws -> Report {
    let old = try FileStorage.open(path)
    return try withExtendedLifetime(old) {
      let size = try old.size
      let archive = try IntactArchive(ArchiveReader(try old.map()), name: path.string)
      let target = try NewArchiveFile(NewArchiveFile.resolved(path), replacing: true)
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
  ///   - willWrite: is told the name of the temporary file once it is there.
  /// - Throws: as ``compact(_:willWrite:)`` does.
  public func compact(
    _ path: FilePath, to target: NewArchiveFile, willWrite: (FilePath) -> Void = { _ in }
  ) throws -> Report {
    let archive = try IntactArchive(try ArchiveReader(path: path), name: path.string)
    return try copy(archive, to: target, willWrite) { _, _ in true }
  }

  private func copy(
    _ archive: IntactArchive, to target: NewArchiveFile, _ willWrite: (FilePath) -> Void,
    isWanted: (Generation, Int) throws -> Bool
  ) throws -> Report {
    let picks = archive.history.entries.map { ArchiveCopy.Pick(source: 0, manifest: $0.cid) }
    let copy = ArchiveCopy(picks, of: [archive], level: level, observer: observer)
    let new = try storage(target)
    do {
      willWrite(target.temporaryPath)
      let (generation, leftOutCount) = try copy.write(to: new)
      try copy.verify(new)
      let isReplaced = try isWanted(generation, leftOutCount)
      if isReplaced { try target.publish() } else { target.discard() }
      return Report(
        snapshotCount: picks.count, oldSize: archive.reader.fileSize,
        oldSectionCount: archive.reader.generation.sectionCount, leftOutCount: leftOutCount,
        generation: generation, isReplaced: isReplaced)
    } catch {
      target.discard()
      throw error
    }
  }
}
