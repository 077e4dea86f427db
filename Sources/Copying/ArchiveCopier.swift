internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage

/// Makes a new archive of snapshots of one archive or several, and verifies it before it gets its
/// name.
struct ArchiveCopier {
  /// The zstd level.
  let level: Int
  let observer: Progress.Observer
  /// Whether what is the account owner's alone is copied, too.
  var keepsPrivateData = true
  /// Where the new archive is written; tests replace it.
  let storage: (AtomicFile) throws -> any ArchiveStorage

  /// Copies snapshots into a new file, which is discarded if anything fails.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first.
  ///   - sources: the archives they are in.
  ///   - target: the new file.
  ///   - willWrite: receives the name of the temporary file once it is there.
  ///   - publish: receives what is committed and how many sections were left out, and gives the
  ///     file its name or discards it.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a source is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new archive is; `ArchiveError` if it cannot be
  ///   written; what `publish` throws.
  func copy<Report>(
    _ links: [ChainLink], of sources: [SourceArchive], to target: AtomicFile,
    _ willWrite: (FilePath) -> Void, publish: (Generation, Int) throws -> Report
  ) throws -> Report {
    for source in sources { try source.reader.refuseTooMuchContent() }
    let links = ChainLink.chain(links)
    let new = try storage(target)
    do {
      willWrite(target.temporaryPath)
      let (generation, leftOutCount) = try write(links, of: sources, to: new)
      try CopyVerification(
        sources: sources, links: links, keepsPrivateData: keepsPrivateData, observer: observer
      ).verify(new)
      return try publish(generation, leftOutCount)
    } catch {
      target.discard()
      throw error
    }
  }

  private func write(
    _ links: [ChainLink], of sources: [SourceArchive], to storage: any ArchiveStorage
  ) throws -> (Generation, leftOutCount: Int) {
    func archived(_ link: ChainLink) throws -> ArchivedSnapshot {
      let source = sources[link.source]
      return try source.reading { try ArchivedSnapshot(link.manifest, in: source.reader) }
    }
    // A plain CAR reader takes the header's root for the account: let it be the account of today.
    guard let newest = links.last else { throw SnapshotError.noSnapshot }
    var copier = try SnapshotCopier(
      sources, into: storage, carHeader: archived(newest).snapshot.car.header, level: level,
      keepsPrivateData: keepsPrivateData, observer: observer)
    // All blocks before all blobs: whoever reads the file over a network gets a repository in a few
    // requests, however many snapshots it came in with.
    for link in links { try copier.copyBlocks(of: archived(link), from: link.source) }
    for link in links {
      try copier.copy(archived(link), from: link.source, isVouched: link.isVouched)
    }
    return (try copier.finish(), copier.sections.leftOutCount)
  }
}
