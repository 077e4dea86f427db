package import Archive
internal import Files
internal import IPLD
internal import Repository

/// Sections of an archive in a temporary file, so that they can be had in any order.
///
/// To read one from the archive takes the pack that it lies in, 1 MiB for some three hundred bytes.
/// In an order that has little to do with that of the archive, as when a server sent its blocks by
/// their CIDs and now sends them by the tree, each pack would be taken thousands of times; so they
/// are read in the order of the archive first.
package struct GatheredSections {
  /// How many runs are read from the archive directly, each from where it lies.
  package static let maximumRuns = 1024

  private let spool: TemporaryFile
  private let mapped: MappedFile
  /// The runs of the archive that are here, in its order, apart from one another.
  private let runs: [Range<UInt64>]
  /// How many sections come before each run.
  private let indices: [Int]
  /// Where each section begins, and where the last ends.
  private let offsets: [Int]

  /// Copies sections from an archive.
  ///
  /// - Parameters:
  ///   - wanted: which, in any order and as often as one likes.
  ///   - reader: the archive.
  ///   - limit: the most bytes that they may have, together.
  ///   - progress: is told how many bytes have been read.
  /// - Throws: `ArchiveError` if one of them is damaged, ``SnapshotError`` if they are longer,
  ///   ``BackupError`` if there is no room for them.
  package init(
    _ wanted: [Range<UInt64>], of reader: ArchiveReader, limit: UInt64, progress: (Int) -> Void
  ) throws {
    runs = BlockOrder.union(of: wanted)
    let spool = try TemporaryFile()
    try reader.copySections(runs) { bytes in
      try spool.write(bytes)
      guard UInt64(spool.count) <= limit else { throw SnapshotError.malformedOrder }
      progress(spool.count)
    }
    self.spool = spool
    mapped = try spool.map()
    var (indices, offsets): ([Int], [Int]) = ([], [])
    mapped.withBytes { bytes in
      var offset = 0
      while offset < bytes.count {
        offsets.append(offset)
        guard case .value(let length) = Varint.read(bytes, at: &offset),
          length <= UInt64(bytes.count - offset)
        else { break }
        offset += Int(length)
      }
      offsets.append(bytes.count)
    }
    var count = 0
    for run in runs {
      indices.append(count)
      count += run.count
    }
    guard count == offsets.count - 1 else { throw SnapshotError.malformedOrder }
    (self.indices, self.offsets) = (indices, offsets)
  }

  /// Divides sections into those that are here and those that are not, in their order.
  package func forEachPart(
    of wanted: Range<UInt64>, _ body: (_ part: Range<UInt64>, _ isHere: Bool) throws -> Void
  ) rethrows {
    try runs.divide(wanted) { part, index in try body(part, index != nil) }
  }

  /// Hands out sections as they stand in a CAR.
  ///
  /// - Precondition: they are among those that were wanted.
  package func copy(_ run: Range<UInt64>, to sink: (Span<UInt8>) throws -> Void) throws {
    // The last run that begins at the section or before it.
    let low = runs.partitioningIndex { $0.lowerBound > run.lowerBound } - 1
    let first = indices[low] + Int(run.lowerBound - runs[low].lowerBound)
    let range = offsets[first]..<offsets[first + run.count]
    try mapped.withBytes { (bytes) throws in try sink(bytes.extracting(range)) }
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
  /// - Throws: as ``GatheredSections`` does; what `sink` throws.
  package func copyCAR(
    _ runs: [Range<UInt64>], limit: UInt64, progress: (Int) -> Void = { _ in },
    to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard runs.count > GatheredSections.maximumRuns else { return try copySections(runs, to: sink) }
    let sections = try GatheredSections(runs, of: self, limit: limit, progress: progress)
    for run in runs { try sections.copy(run, to: sink) }
  }
}
