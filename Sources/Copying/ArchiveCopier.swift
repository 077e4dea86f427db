internal import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Snapshots
package import SystemPackage
internal import Verification

/// Makes a new archive of snapshots of one archive or several, and verifies it before it gets its
/// name.
package struct ArchiveCopier {
  let level: Int
  let limits: ArchiveLimits
  /// Whether what is made and verified is thrown away: it only shows what would be.
  let isDryRun: Bool
  let observer: Progress.Observer
  private let storage: (AtomicFile, [ArchiveReader]) throws -> any ArchiveStorage

  /// A copier that compresses at a zstd level, to a storage of another kind in tests.
  package init(
    level: Int = 3, limits: ArchiveLimits = ArchiveLimits(), isDryRun: Bool = false,
    observer: @escaping Progress.Observer = { _ in },
    storage: @escaping (AtomicFile, [ArchiveReader]) throws -> any ArchiveStorage = {
      try $0.archiveStorage(of: $1)
    }
  ) {
    (self.level, self.limits, self.observer) = (level, limits, observer)
    self.isDryRun = isDryRun
    self.storage = storage
  }

  /// Copies snapshots into a new file, which is discarded if anything fails.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first.
  ///   - archives: the archives they are in.
  ///   - target: the new file.
  ///   - keepsPrivateData: whether private data is copied, too.
  ///   - willWrite: receives the name of the temporary file once it exists.
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
    let new = try storage(target, archives.map(\.reader))
    return try target.orDiscard {
      willWrite(target.temporaryPath)
      let (generation, leftOutCount) = try write(
        links, of: archives, into: new, keepsPrivateData: keepsPrivateData)
      try SnapshotVerifier(observer: observer)
        .verify(new, asCopyOf: archives, links, keepsPrivateData: keepsPrivateData)
      for archive in archives { try archive.reader.checkFetched() }
      return try publish(generation, leftOutCount)
    }
  }

  /// Gives a new archive its name, unless it only shows what would be.
  func publish(_ target: AtomicFile) throws {
    if isDryRun { target.discard() } else { try target.publishArchive() }
  }

  /// Writes the copy; returns what is committed, and how many sections were left out.
  ///
  /// The memory for the copying is freed before the copy is verified.
  private func write(
    _ links: [ChainLink], of archives: [SourceArchive], into new: any ArchiveStorage,
    keepsPrivateData: Bool
  ) throws -> (Generation, leftOutCount: Int) {
    func archived(_ link: ChainLink) throws -> ArchivedSnapshot {
      let archive = archives[link.source]
      return try archive.reading { try ArchivedSnapshot(link.manifest, in: archive.reader) }
    }
    // A plain CAR reader takes the header's root for the account: so it names the current account.
    guard let newest = links.last else { throw SnapshotError.noSnapshot }
    var copier = try SnapshotCopier(
      archives, into: new, carHeader: archived(newest).snapshot.car.header, level: level,
      keepsPrivateData: keepsPrivateData, observer: observer)
    // All blocks come before all blobs, so that a client gets a repository over a network in a
    // few requests, however many snapshots it came in with.
    for link in links { try copier.copyCAR(of: archived(link), from: link.source) }
    for link in links {
      try copier.copy(archived(link), from: link.source, isVouched: link.isVouched)
    }
    return (try copier.finish(), copier.leftOutCount)
  }
}

/// Rewrites an archive, dropping what no snapshot needs, and replaces the old file.
///
/// It removes sections that only forgotten snapshots needed, or that an interrupted write left;
/// manifests that were made again; index segments that were merged into others; all footers but
/// one. Every snapshot stays.
///
/// 1. The old file is not written to, and keeps its name until the new one has been verified.
/// 2. It is locked in the meantime, and must still be in its place before it is replaced.
extension ArchiveCopier {
  /// The result of compacting: how many snapshots there are; how many bytes and sections the old
  /// file has, and how many of these no snapshot needs; what is in the new file; and whether that
  /// was put in place: not if everything is needed and it would not be smaller.
  package typealias CompactReport = (
    snapshotCount: Int, oldSize: UInt64, oldSectionCount: UInt64, leftOutCount: Int,
    generation: Generation, isReplaced: Bool
  )

  /// Compacts an archive, in place or into another file.
  ///
  /// - Parameters:
  ///   - path: the archive; of a link, the file it leads to is replaced.
  ///   - other: the other file, and then the archive is only read; nil to replace the archive.
  ///   - willWrite: receives the name of the temporary file once it exists.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new one is; `ArchiveError` if another process is
  ///   writing to it, or the new one cannot be written. The archive is unchanged then.
  package func compact(
    _ path: FilePath, to other: AtomicFile? = nil, willWrite: (FilePath) -> Void = { _ in }
  ) throws -> CompactReport {
    if let other {
      let reader = try ArchiveReader(path: path, limits: limits)
      return try compact(
        SourceArchive(reader, name: path.string), to: other, willWrite: willWrite)
    }
    let old = try FileStorage.openArchive(path)
    return try withExtendedLifetime(old) {
      let size = try old.size
      let archive = try SourceArchive(
        ArchiveReader(old.map(), limits: limits), name: path.string)
      let target = try AtomicFile(AtomicFile.resolved(path), replacing: true)
      return try compact(archive, to: target, willWrite: willWrite) { generation, leftOutCount in
        guard try old.size == size, try old.isInPlace else {
          throw ArchiveError(.changedMeanwhile)
        }
        // Unneeded sections go, even if the others, in another order, do not compress as well.
        guard leftOutCount > 0 || generation.committedLength < size else { return false }
        try target.takeMode(of: path)
        return true
      }
    }
  }

  /// Compacts an archive that is only read, into a file.
  ///
  /// - Parameters:
  ///   - archive: the archive.
  ///   - target: the file.
  ///   - willWrite: receives the name of the temporary file once it exists.
  ///   - isWanted: whether the file gets its name, once it is known what is in it.
  /// - Throws: as the other does.
  package func compact(
    _ archive: SourceArchive, to target: AtomicFile, willWrite: (FilePath) -> Void = { _ in },
    ifWanted isWanted: (Generation, Int) throws -> Bool = { _, _ in true }
  ) throws -> CompactReport {
    let links = archive.history.entries.map { ChainLink($0) }
    return try copy(links, of: [archive], to: target, willWrite) { generation, leftOutCount in
      let isReplaced = try isWanted(generation, leftOutCount)
      if isReplaced { try publish(target) } else { target.discard() }
      return (
        links.count, archive.reader.fileSize, archive.reader.generation.sectionCount,
        leftOutCount, generation, isReplaced
      )
    }
  }
}

/// Makes one archive of several: all of their snapshots, each section once.
///
/// Accounts take turns by the times their snapshots were made, and by archive where these are the
/// same. Among the snapshots of one account, an older revision goes before a newer one, however late
/// it was packed, unless an archive has them the other way round.
///
/// Snapshots that differ only in what comes before them, where their blocks lie and which of their
/// blobs are there are kept once. A blob that one archive lacks and another holds is held
/// afterwards, and the manifest says so.
extension ArchiveCopier {
  /// The result of merging: how many snapshots there are, how many were in more than one archive,
  /// and of how many accounts; how many bytes are committed in the archives, together; how many
  /// accounts have private data that was left out; and what is in the new file.
  package typealias MergeReport = (
    snapshotCount: Int, sharedCount: Int, accountCount: Int, sourceSize: UInt64,
    withoutPrivateCount: Int, generation: Generation
  )

  /// Merges archives into a new one, and verifies it before it gets its name.
  ///
  /// What a damaged archive shares with an undamaged one is copied from the latter, in whatever
  /// order they are given.
  ///
  /// - Parameters:
  ///   - archives: the archives, which are only read.
  ///   - target: the new one.
  ///   - keepsPrivateData: whether private data is kept; nil to keep it if all snapshots are of one
  ///     account.
  ///   - willWrite: receives the name of the temporary file once it exists.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if one of them is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new one is; `ArchiveError` if it cannot be written.
  package func merge(
    _ archives: [SourceArchive], to target: AtomicFile, keepsPrivateData: Bool? = nil,
    willWrite: (FilePath) -> Void = { _ in }
  ) throws -> MergeReport {
    let archives = try Self.undamagedFirst(archives)
    let accounts = Set(archives.flatMap { $0.history.entries.map(\.did) })
    let keepsPrivateData = keepsPrivateData ?? (accounts.count == 1)
    var withoutPrivate: Set<DID> = []
    for archive in archives where !keepsPrivateData {
      withoutPrivate.formUnion(try archive.reading { try archive.reader.accountsWithPrivateData() })
    }
    let (links, sharedCount) = try Self.order(archives, keepsPrivateData: keepsPrivateData)
    return try copy(
      links, of: archives, to: target, keepsPrivateData: keepsPrivateData, willWrite
    ) { generation, _ in
      try publish(target)
      let sourceSize = archives.reduce(0) { $0 + $1.reader.generation.committedLength }
      return (
        links.count, sharedCount, accounts.count, sourceSize, withoutPrivate.count, generation
      )
    }
  }

  /// The archives, those first that match their checksums.
  private static func undamagedFirst(_ archives: [SourceArchive]) throws -> [SourceArchive] {
    guard archives.count > 1 else { return archives }
    var damaged: [SourceArchive] = []
    let undamaged = try archives.filter { archive in
      do {
        try archive.verifyChecksums()
        return true
      } catch BackupError.damagedArchive {
        damaged.append(archive)
        return false
      }
    }
    return undamaged + damaged
  }

  /// All snapshots in their order, each once; and how many occurred more than once.
  ///
  /// - Parameters:
  ///   - archives: the archives.
  ///   - keepsPrivateData: whether private data counts.
  ///   - areDamaged: whether a snapshot may be whole in one of them only, which is taken then.
  static func order(
    _ archives: [SourceArchive], keepsPrivateData: Bool, areDamaged: Bool = false
  ) throws -> ([ChainLink], shared: Int) {
    var places: [CID: Int] = [:]
    var sharedCount = 0
    typealias Counts = (whole: Int, held: Int, accepted: Int)
    var found: [(link: ChainLink, did: DID, revision: String, moment: Moment?, counts: Counts)] = []
    for (source, archive) in archives.enumerated() {
      // A snapshot whose time cannot be read stays behind the one it followed.
      var latest: Moment?
      // A snapshot stays behind a newer revision that it followed: that is a rollback.
      var revisions: [DID: String] = [:]
      var examiner = SnapshotExaminer(archive.reader)
      for entry in archive.history.entries {
        var snapshot = try archive.reading {
          try ArchivedSnapshot.manifest(entry.cid, in: archive.reader)
        }
        if !keepsPrivateData { snapshot.privateData = nil }
        let isWhole = try !areDamaged || examiner.state(of: entry.cid).isWhole
        let counts = (isWhole ? 1 : 0, snapshot.blobs.held, snapshot.blobs.accepted)
        let content = try snapshot.content(countsBlobs: false)
        latest = entry.moment ?? latest
        var revision = revisions[entry.did] ?? ""
        if entry.isVouched { revision = max(revision, entry.rev?.text ?? "") }
        revisions[entry.did] = revision
        if let place = places[content] {
          sharedCount += 1
          let isVouched = entry.isVouched || found[place].link.isVouched
          // The one that says more of its blobs stands for both.
          if found[place].counts < counts {
            found[place].link = ChainLink(entry, source: source)
            found[place].counts = counts
          }
          found[place].link.isVouched = isVouched
          found[place].revision = max(found[place].revision, revision)
        } else {
          places[content] = found.count
          found.append((ChainLink(entry, source: source), entry.did, revision, latest, counts))
        }
      }
    }
    // One without a time that comes first in its archive counts as the oldest.
    let byTime = found.indices.sorted {
      Moment.areInOrder((found[$0].moment, $0), (found[$1].moment, $1))
    }
    var byRevision = Dictionary(grouping: byTime) { found[$0].did }.mapValues { places in
      places.enumerated().sorted {
        (found[$0.element].revision, $0.offset) < (found[$1.element].revision, $1.offset)
      }.map { found[$0.element].link }[...]
    }
    return (byTime.compactMap { byRevision[found[$0].did]?.popFirst() }, sharedCount)
  }
}
