package import Archive
package import Files
internal import IPLD

/// Sections of an archive in any order.
///
/// To read one from the archive takes the pack that it lies in, 1 MiB for some three hundred bytes.
/// In an order that has little to do with that of the archive, as when a server sent its blocks by
/// their CIDs and now sends them by the tree, each pack would be taken thousands of times; so they
/// are laid out in the order of the archive first.
extension LaidOutBlocks {
  /// How many runs are read from the archive directly, each from where it lies.
  package static let maximumRuns = 1024

  /// Lays sections of an archive out.
  ///
  /// - Parameters:
  ///   - wanted: which, in any order, repetitions included.
  ///   - reader: the archive.
  ///   - keepsAll: whether each is kept whole.
  ///   - observer: called with the number of bytes read, those of a large section before.
  /// - Throws: `ArchiveError` if one of them is damaged, ``BackupError`` if there is no room for
  ///   them; what `observer` throws.
  package convenience init(
    _ wanted: [Range<UInt64>], of reader: ArchiveReader, keepsAll: Bool = true,
    _ observer: (Progress) throws -> Void = { _ in }
  ) throws {
    var intake = try BlockIntake(isHashing: true, keepsAll: keepsAll)
    for run in wanted.united {
      try intake.read(run, reader, observer)
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
  ///   - observer: called with the number of bytes read, if they are read in the order of the
  ///     archive first.
  ///   - sink: receives the bytes.
  /// - Throws: as laying them out does; what `sink` throws.
  package func copyCAR(
    _ runs: [Range<UInt64>], _ observer: (Progress) throws -> Void = { _ in },
    to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard runs.count > LaidOutBlocks.maximumRuns else { return try copySections(runs, to: sink) }
    let sections = try LaidOutBlocks(runs, of: self, observer)
    for run in runs { try sections.copy(run, to: sink) }
  }
}
