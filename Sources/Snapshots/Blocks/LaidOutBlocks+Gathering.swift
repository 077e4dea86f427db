package import Archive
internal import Files
package import Repository

/// Sections of an archive in any order.
///
/// To read one from the archive takes the pack that it lies in, 1 MiB for some three hundred bytes.
/// In an order that has little to do with that of the archive, as when a server sent its blocks by
/// their CIDs and now sends them by the tree, each pack would be taken thousands of times; so they
/// are laid out in the order of the archive first.
extension LaidOutBlocks {
  /// How many runs are read from the archive directly, each from where it lies.
  package static let maximumRuns = 1024

  /// Lays sections of an archive out whole.
  ///
  /// - Parameters:
  ///   - wanted: which, in any order and as often as one likes.
  ///   - reader: the archive.
  ///   - limit: the most bytes that they may have, together.
  ///   - progress: is told how many bytes have been read.
  /// - Throws: `ArchiveError` if one of them is damaged, ``SnapshotError`` if they are longer,
  ///   ``BackupError`` if there is no room for them.
  package init(
    gathering wanted: [Range<UInt64>], of reader: ArchiveReader, limit: UInt64,
    progress: (Int) -> Void = { _ in }
  ) throws {
    var intake = try BlockIntake(isHashing: true, keepsAll: true)
    for run in BlockOrder.union(of: wanted) {
      try intake.read(run, reader) { found in
        guard found.done <= limit else { throw SnapshotError.malformedOrder }
        progress(Int(clamping: found.done))
      }
      if let failure = intake.failure { throw failure }
    }
    try self.init(intake)
  }
}

extension ArchiveReader {
  /// Hands out sections as they stand in a CAR, in whatever order.
  ///
  /// - Parameters:
  ///   - runs: which.
  ///   - limit: the most bytes that they may have, together.
  ///   - progress: is told how many bytes have been read, if they are read in the order of the
  ///     archive first.
  ///   - sink: receives the bytes.
  /// - Throws: as laying them out does; what `sink` throws.
  package func copyCAR(
    _ runs: [Range<UInt64>], limit: UInt64, progress: (Int) -> Void = { _ in },
    to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard runs.count > LaidOutBlocks.maximumRuns else { return try copySections(runs, to: sink) }
    let sections = try LaidOutBlocks(gathering: runs, of: self, limit: limit, progress: progress)
    for run in runs { try sections.copy(run, to: sink) }
  }
}
