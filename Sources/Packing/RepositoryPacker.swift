package import ATProtocol
package import Archive
package import Files
package import IPLD
package import Repository
package import Snapshots
package import SystemPackage

/// Packs a repository and its blobs into an archive, a new one or one that has snapshots already.
///
/// The CAR is inspected first, so that nothing is written for one that is not what it should be.
/// Then those of its blocks that the archive does not have go into it in their order, then the
/// blobs, then what is known about the account, then the manifest. If the newest snapshot of the
/// account says all that already, none is added, and what there is is synced. Parts of it that are
/// damaged in the archive are written again.
package struct RepositoryPacker {
  /// How to pack.
  package struct Options: Sendable {
    /// The zstd level.
    package var level = 3
    /// How much parity protects what is added, in percent; nil for as much as the archive has.
    package var parity: Int?
    /// Whether files that no record refers to are kept as well.
    package var keepsExtras = false
    /// Whether the file has not been announced yet, so that one that cannot be appended to is
    /// emptied first; see `ArchiveOptions`.
    package var startsOver = false
    /// Whether an archive that has other accounts only is appended to.
    package var sharesArchive = true
    /// What is known about the account.
    package var facts = AccountFacts()
    /// Whether the account's PLC log has to lead back to its first operation.
    ///
    /// What an earlier extraction has left is packed again as it is.
    package var requiresProvenLog = false
    /// What is not taken for evidence against the account, and noted as accepted.
    package var accepted: Set<Standing.Doubt> = []
    /// By whom the snapshot is made, where and when.
    package var provenance: SnapshotBuilder.Provenance

    /// Options with these facts about the moment.
    package init(
      tool: String, createdAt: String, hostSystem: String,
      milliseconds: @escaping @Sendable () -> Int
    ) {
      provenance = SnapshotBuilder.Provenance(
        tool: tool, createdAt: createdAt, hostSystem: hostSystem, milliseconds: milliseconds)
    }
  }

  /// The result of packing.
  package struct Report: Sendable {
    /// What was packed.
    package let inspection: RepositoryInspection
    /// The manifest.
    package let snapshot: Snapshot
    /// What is committed now.
    package let generation: Generation
    /// Whether the newest snapshot of the account was the same, so that none was added.
    package let isUnchanged: Bool
    /// Whether damaged sections were written again.
    package let isHealed: Bool
    /// If some were, the newest snapshot was lost, or none was added: what of the archive is
    /// damaged still.
    package let damage: StoredDamage
    /// How many bytes the archive has grown by.
    package let bytesAdded: UInt64
    /// Blobs that records refer to and that were not there.
    package let missing: BlobLedger.MissingList
    /// Files whose content is not what their names say, or that could not be taken: path and why.
    package let refused: [(path: String, why: String)]
    /// How many files no record refers to, and are not in the archive.
    package let leftOutCount: Int
    /// Whether the PLC log that was given says when operations were received.
    package let knowsTimes: Bool
    /// Who signed the commit, by what was given about the account; nil if that names no key.
    package let signature: SignatureVerdict?
    /// Snapshots that an unfinished write had left in the archive and that could not be kept.
    package let lost: [LostSnapshot]
    /// If the CAR is the content of an archive, the commits of its snapshots, the oldest first.
    package let archivedCommits: [CID]
  }

  private let options: Options
  private let observer: Progress.Observer

  /// A packer.
  package init(_ options: Options, observer: @escaping Progress.Observer = { _ in }) {
    (self.options, self.observer) = (options, observer)
  }

  /// Packs the CAR and what is found in the folders into a new archive, and gives that its name.
  ///
  /// - Parameters:
  ///   - car: the CAR.
  ///   - folders: where blobs may be.
  ///   - target: the new archive. Its file is made when the CAR has proved to be one to pack, and
  ///     removed if packing fails; what an earlier run has left there is continued, and stays.
  ///   - willWrite: called with the name of the temporary file once it is there, unless an earlier
  ///     run has left something in it.
  ///   - willReplace: called with a sentence if what an earlier run has left is damaged and is
  ///     replaced.
  /// - Throws: as ``pack(_:folders:into:)`` does, and if the archive cannot be given its name;
  ///   ``BackupError/leftover(_:_:)`` if another run may still need what is there.
  package func pack(
    _ car: InputFile, folders: [BlobFolder], to target: AtomicFile,
    willWrite: (FilePath) -> Void = { _ in }, willReplace: (String) -> Void = { _ in }
  ) throws -> Report {
    try target.orDiscard {
      let report = try pack(car, folders, known: nil) { repository in
        let (storage, continued, replaced) = try target.storage { reader in
          try Self.isContinued(reader, at: target.temporaryPath, by: repository)
        }
        if let replaced { willReplace(replaced) }
        if continued == nil { willWrite(target.temporaryPath) }
        return (storage, continued.map { $0.generation.number == 0 } ?? true)
      }
      try target.publishArchive()
      return report
    }
  }

  /// Packs the CAR and what is found in the folders into an existing archive, or, with
  /// ``Options/startsOver``, into a file that has not been announced.
  ///
  /// - Parameters:
  ///   - car: the CAR.
  ///   - folders: where blobs may be.
  ///   - storage: the file. It is locked, and nothing is written to it until the CAR has proved to
  ///     be one to pack.
  /// - Throws: ``BackupError`` and `CARError` for a repository that cannot be packed;
  ///   `ArchiveError` for a file that cannot be written. The archive is as it was then, except for
  ///   checkpoints.
  package func pack(
    _ car: InputFile, folders: [BlobFolder], into storage: any ArchiveStorage
  ) throws -> Report {
    try storage.lock()
    let known = try options.startsOver ? nil : ArchiveReader(storage.map(), ignoresTail: true)
    return try pack(car, folders, known: known) { _ in (storage, options.startsOver) }
  }

  private func pack(
    _ car: InputFile, _ folders: [BlobFolder], known: ArchiveReader?,
    _ open: (CheckedRepository) throws -> (any ArchiveStorage, startsOver: Bool)
  ) throws -> Report {
    let provenance = options.provenance.begun()
    let repository = try CheckedRepository(car.mapped, archive: known, observer: observer)
    let (inspection, commit) = (repository.inspection, repository.commit)
    if !options.sharesArchive, let known,
      try ArchivedSnapshot.newest(of: commit.did, in: known) == nil
    {
      try known.refuseOtherAccounts(than: commit.did, named: nil)
    }
    var facts = options.facts
    try facts.completeFromDIDDocument(of: commit.did)
    let knowsTimes = try !options.requiresProvenLog || facts.checkPLCLog(of: commit.did)
    let files = try folders.flatMap { folder in try folder.files() }
    var archiveOptions = ArchiveOptions(level: options.level)
    archiveOptions.appendsBehindDamage = true
    archiveOptions.parity = options.parity
    let storage: any ArchiveStorage
    (storage, archiveOptions.startsOver) = try open(repository)
    var lost: [LostSnapshot] = []
    var writer = try ArchiveWriter.openNaming(
      storage, carHeader: repository.header, options: archiveOptions, losses: &lost)
    let isBehindDamage = writer.isBehindDamage
    return try writer.orAbandon { writer in
      let base = try writer.reader.flatMap { reader in
        try ArchivedSnapshot.newest(of: commit.did, in: reader)
      }
      facts.handle = facts.handle ?? base?.snapshot.handle
      facts.pds = facts.pds ?? base?.snapshot.pds
      let start = writer.generation?.committedLength ?? 0
      var blobs = try BlobPacking(
        repository, archive: writer.reader, base: base, keepsExtras: options.keepsExtras)
      var draft = repository.draft
      draft.car = try repository.pack(into: &writer, after: base, observer)
      try car.checkUnchanged()
      try blobs.pack(files, into: &writer, observer)
      var ledger = blobs.ledger
      let missing = ledger.missing
      // The absence of an entry means that the blob was not given.
      ledger.missing = BlobLedger.MissingList(
        missing.lazy.filter { $0.reason != .notProvided || $0.accepted != nil })
      draft.standing = try Standing.of(
        draft, after: base, accepting: options.accepted, now: provenance.createdAt)
      draft.standing.takeHandle(from: base?.snapshot.standing)
      let ending = try SnapshotBuilder(draft, facts, ledger, after: base, provenance).end(&writer)
      // A run that was killed may not have waited for the name; the content was synced at opening.
      if ending.isUnchanged { try storage.synchronizeName() }
      let generation = ending.generation
      return Report(
        inspection: inspection, snapshot: ending.snapshot, generation: generation,
        isUnchanged: ending.isUnchanged, isHealed: ending.isHealed,
        damage: try ending.isUnchanged || ending.isHealed || isBehindDamage
          || writer.reader?.hasLostHead == true
          ? storage.storedDamage() : StoredDamage(),
        bytesAdded: generation.committedLength - start, missing: missing,
        refused: blobs.refused, leftOutCount: blobs.leftOutCount,
        knowsTimes: knowsTimes,
        signature: UnixTime(provenance.createdAt).flatMap { facts.judge(commit, now: $0) },
        // What an interrupted run has left of this one has been written again.
        lost: lost.filter { $0.member != ending.snapshot.member },
        archivedCommits: repository.file?.archivedCommits(besides: inspection) ?? [])
    }
  }
}

/// Packing resumes what an earlier run has left under the temporary name, or does not.
///
/// | what is there | packing |
/// |---|---|
/// | blocks of the same CAR, not committed | goes on |
/// | blocks of the same account, not committed | begins |
/// | committed blocks of the same account, and no snapshot: an interrupted backup | goes on |
/// | a snapshot of the same commit | goes on |
/// | anything else | fails |
extension RepositoryPacker {
  /// Whether packing continues an archive instead of starting again.
  ///
  /// - Parameters:
  ///   - reader: what is there.
  ///   - path: its name, for the message.
  ///   - repository: what is going to be packed.
  /// - Throws: ``BackupError/leftover(_:_:)`` for something that another run may still need.
  static func isContinued(
    _ reader: ArchiveReader, at path: FilePath, by repository: CheckedRepository
  ) throws -> Bool {
    var owner = reader.owner
    let isOwn = owner == repository.commit.did
    if reader.generation.number == 0 {
      // The header names the commit, which may be in a frame that the power has torn.
      if try unlessDamaged({ try reader.carHeader }) == repository.header { return true }
      if isOwn { return false }
    } else if reader.recovery?.rebuild == nil {
      guard let head = reader.generation.head?.cid else {
        if isOwn { return true }
        throw BackupError.leftover(path.string, owner?.text)
      }
      if let newest = try? ArchivedSnapshot.manifest(head, in: reader) {
        owner = newest.did
        if newest.did == repository.commit.did,
          newest.commit == repository.inspection.header.roots.first
        {
          return true
        }
      }
    }
    throw BackupError.leftover(path.string, owner?.text)
  }
}
