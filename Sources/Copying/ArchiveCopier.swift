package import Archive
package import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage

/// Makes a new archive of snapshots of one archive or several, and verifies it before it gets its
/// name.
package struct ArchiveCopier {
  private let level: Int
  let limits: ReadLimits
  let observer: Progress.Observer
  private let storage: (AtomicFile) throws -> any ArchiveStorage

  /// A copier that compresses at a zstd level, to a storage of another kind in tests.
  package init(
    level: Int = 3, limits: ReadLimits = ReadLimits(),
    observer: @escaping Progress.Observer = { _ in },
    storage: @escaping (AtomicFile) throws -> any ArchiveStorage = { try $0.storage() }
  ) {
    (self.level, self.limits, self.observer) = (level, limits, observer)
    self.storage = storage
  }

  /// Copies snapshots into a new file, which is discarded if anything fails.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first.
  ///   - archives: the archives they are in.
  ///   - target: the new file.
  ///   - keepsPrivateData: whether what is the account owner's alone is copied, too.
  ///   - willWrite: receives the name of the temporary file once it is there.
  ///   - publish: receives what is committed and how many sections were left out, and gives the
  ///     file its name or discards it.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a source is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new archive is; `ArchiveError` if it cannot be
  ///   written; what `publish` throws.
  func copy<Report>(
    _ links: [ChainLink], of archives: [SourceArchive], to target: AtomicFile,
    keepsPrivateData: Bool = true, _ willWrite: (FilePath) -> Void,
    publish: (Generation, Int) throws -> Report
  ) throws -> Report {
    for archive in archives { try archive.reader.refuseTooMuchContent() }
    let links = ChainLink.chain(links)
    func archived(_ link: ChainLink) throws -> ArchivedSnapshot {
      let archive = archives[link.source]
      return try archive.reading { try ArchivedSnapshot(link.manifest, in: archive.reader) }
    }
    let new = try storage(target)
    do {
      willWrite(target.temporaryPath)
      // A plain CAR reader takes the header's root for the account: let it be the account of today.
      guard let newest = links.last else { throw SnapshotError.noSnapshot }
      var copier = try SnapshotCopier(
        archives, into: new, carHeader: archived(newest).snapshot.car.header, level: level,
        keepsPrivateData: keepsPrivateData, observer: observer)
      // All blocks before all blobs: whoever reads the file over a network gets a repository in a
      // few requests, however many snapshots it came in with.
      for link in links { try copier.copyCAR(of: archived(link), from: link.source) }
      for link in links {
        try copier.copy(archived(link), from: link.source, isVouched: link.isVouched)
      }
      let (generation, leftOutCount) = (try copier.finish(), copier.leftOutCount)
      try verify(new, against: archives, links, keepsPrivateData: keepsPrivateData)
      return try publish(generation, leftOutCount)
    } catch {
      target.discard()
      throw error
    }
  }
}
