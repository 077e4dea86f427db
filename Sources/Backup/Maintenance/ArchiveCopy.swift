internal import Archive
internal import IPLD

/// Snapshots of one archive or several on their way into a new one.
struct ArchiveCopy {
  /// A snapshot to be copied.
  struct Pick {
    /// The number of the archive it is in.
    let source: Int
    /// Its manifest.
    let manifest: CID
  }

  /// The archives.
  let sources: [IntactArchive]
  /// The snapshots, the oldest first; one at least.
  let picks: [Pick]
  private let level: Int
  let observer: Progress.Observer

  /// A copy of these snapshots.
  init(
    _ picks: [Pick], of sources: [IntactArchive], level: Int,
    observer: @escaping Progress.Observer
  ) {
    self.sources = sources
    self.picks = picks
    self.level = level
    self.observer = observer
  }

  /// Writes the new archive, in one generation.
  ///
  /// Whatever is in the storage is thrown away first: what somebody else began there may be more than these snapshots need.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a source is damaged; `ArchiveError` if the new archive cannot be written.
  /// - Returns: What is committed, and how many sections of the archives are not in it, nor another in their place.
  func write(to storage: any ArchiveStorage) throws -> (Generation, leftOutCount: Int) {
    guard let oldest = picks.first else { throw SnapshotError.noSnapshot }
    try storage.lock()
    try storage.truncate(to: 0)
    let source = sources[oldest.source]
    let header = try source.reading {
      try ArchivedSnapshot.manifest(oldest.manifest, in: source.reader).car.header
    }
    var options = ArchiveOptions(level: level)
    // Nobody looks at it before it is whole.
    options.checkpointLength = .max
    options.optionalFeatures = sources.reduce(0) { $0 | $1.reader.generation.features.optional }
    var writer = try ArchiveWriter.open(storage, carHeader: header, options: options)
    var copier = try SnapshotCopier(sources, observer: observer)
    for pick in picks { try copier.copy(pick.manifest, from: pick.source, into: &writer) }
    let head = try copier.appendManifests(to: &writer)
    let generation = try SnapshotCopier.writing { try writer.commit(manifest: head) }
    for source in sources { try source.checkIndex() }
    return (generation, copier.leftOutCount)
  }
}
