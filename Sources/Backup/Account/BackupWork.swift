internal import ATProtocol
internal import Archive
internal import IPLD
internal import Synchronization
internal import SystemPackage
internal import XRPC

/// The backup of an account of which is known who it is, from its server, into its archive: the steps in their order.
struct BackupWork: Sendable {
  let network: Network
  let options: AccountBackup.Options
  let observer: @Sendable (BackupEvent) -> Void
  let identity: AccountIdentity
  let client: XRPCClient
  /// Servers where the account was before, to ask for blobs that this one does not give out.
  var earlierClients: [XRPCClient] = []
  /// The snapshot that the archive has of the account.
  let base: ArchivedSnapshot?
  /// When it began, in milliseconds.
  let begin: Int

  private let warnings = Warnings()

  /// What a person should know, from all steps.
  private final class Warnings: Sendable {
    private let texts = Mutex<[String]>([])

    /// All of them.
    var all: [String] { texts.withLock { $0 } }

    /// Adds one; answers whether it is new.
    func add(_ text: String) -> Bool {
      texts.withLock { texts in
        guard !texts.contains(text) else { return false }
        texts.append(text)
        return true
      }
    }
  }

  /// A backup, of which `begin` is when it began, in milliseconds.
  init(
    _ backup: AccountBackup, identity: AccountIdentity, client: XRPCClient,
    base: ArchivedSnapshot?, begin: Int
  ) {
    network = backup.network
    options = backup.options
    observer = backup.observer
    self.identity = identity
    self.client = client
    self.base = base
    self.begin = begin
  }

  /// Backs up into an archive.
  func run(into target: ArchiveTarget) async throws -> BackupReport {
    identity.warnings.forEach(warn)
    let latest = try await latestCommit()
    let isUnchanged = base.map { $0.snapshot.commit == latest && $0.snapshot.isComplete } ?? false
    if let base, isUnchanged, base.snapshot.isWhole {
      if try !options.checksHeld || target.storedDamage().isNone {
        try target.publish()
        return .upToDate(
          base, at: target.path, milliseconds: options.milliseconds() - begin,
          warnings: warnings.all)
      }
      warn("the archive is damaged; what the server still has of it is written again")
    }
    observer(.progress(BackupProgress(.repository)))
    let fetched: RepositoryFetcher.Fetched
    if let base, isUnchanged, case .success(let restored) = try restored(base) {
      fetched = restored
    } else {
      fetched = try await fetchRepository(target)
    }
    observer(
      .repository(
        records: fetched.repository.inspection.recordCount,
        bytes: UInt64(fetched.repository.car.count),
        isIncremental: !isUnchanged && fetched.origin.since != nil))
    return try await write(
      fetched,
      listing: try await listBlobs(fetched.repository.inspection.blobs.entries.count),
      plcLog: try await fetchPLCLog(), to: target)
  }

  /// Asks once more for the blobs that are missing, and for nothing else.
  ///
  /// - Parameter plcLog: the account's history in the PLC directory, if it is known.
  func fill(_ base: ArchivedSnapshot, plcLog: [UInt8]?, in target: ArchiveTarget) async throws
    -> BackupReport
  {
    identity.warnings.forEach(warn)
    let repository = try restored(base).get()
    // What a list that broke off would have named is not known to be missing.
    let listing: BlobListing? =
      if base.snapshot.blobs.listFault == nil { nil } else {
        try await listBlobs(repository.repository.inspection.blobs.entries.count)
      }
    return try await write(repository, listing: listing, plcLog: plcLog, to: target)
  }

  private func write(
    _ fetched: RepositoryFetcher.Fetched, listing: BlobListing?, plcLog: [UInt8]?,
    to target: ArchiveTarget
  ) async throws -> BackupReport {
    observer(.progress(BackupProgress(.blobs)))
    var archiveOptions = ArchiveOptions(level: options.level)
    // What is committed to a file that has no name yet is gone on with, and the repository has been compared with it.
    archiveOptions.startsOver = target.isNew && target.reader == nil
    let appender = try ArchiveAppender(
      target.storage(), carHeader: CARPacking(fetched.repository, { _ in }).header,
      options: archiveOptions)
    do {
      let report = try await append(
        fetched, listing: listing, plcLog: plcLog, with: appender, for: target)
      try target.publish()
      return report
    } catch {
      await appender.keepWhatArrived()
      throw error
    }
  }

  // MARK: What the server has

  /// The newest commit; nil if the server does not say.
  private func latestCommit() async throws -> CID? {
    do {
      return try await client.call(GetLatestCommit(did: identity.did)).cid
    } catch let error as XRPCError {
      try refuseUnavailable(error)
      // Whether the server is of use, the repository tells; a failure that may pass has been waited for.
      guard !error.isTransient else { throw error }
      return nil
    }
  }

  /// Says in words of one's own that an account is not to be had.
  private func refuseUnavailable(_ error: XRPCError) throws {
    guard let state = error.declared(GetRepo.DeclaredError.self) else { return }
    throw BackupError.accountUnavailable(identity.did.text, state.sentence)
  }

  /// The repository that the archive has already; a failure if it is damaged.
  private func restored(
    _ base: ArchivedSnapshot
  ) throws -> Result<RepositoryFetcher.Fetched, BackupError> {
    let restored = try RestoredRepository(base)
    if let flaw = restored.flaw { return .failure(.carNotExact(flaw)) }
    return .success(
      RepositoryFetcher.Fetched(
        repository: try CheckedRepository(
          restored.mapped, archive: base.reader, isHashed: true, observer: { _ in }),
        origin: base.snapshot.fetched ?? Snapshot.Fetched()))
  }

  private func fetchRepository(_ target: ArchiveTarget) async throws -> RepositoryFetcher.Fetched {
    let pace = ProgressPace()
    let fetcher = RepositoryFetcher(
      client: client, did: identity.did, key: identity.key, folder: target.folder,
      arrived: { [observer] count in
        guard pace.isDue() else { return }
        var progress = BackupProgress(.repository)
        progress.bytes = UInt64(count)
        observer(.progress(progress))
      },
      retrying: { [self] error in
        observer(
          .warning("the repository is fetched once more, for what came was not whole: \(error)"))
      })
    do {
      return try await fetcher.fetch(after: base, archive: target.reader)
    } catch let error as XRPCError {
      try refuseUnavailable(error)
      throw error
    }
  }

  /// The blobs that the server lists, as far as the list came.
  ///
  /// - Parameter referenced: how many blobs records refer to.
  private func listBlobs(_ referenced: Int) async throws -> BlobListing {
    observer(.progress(BackupProgress(.listing)))
    let listing = try await BlobListing.fetch(
      of: identity.did, from: client, referenced: referenced
    ) { [observer] count in
      var progress = BackupProgress(.listing)
      progress.blobsTotal = count
      observer(.progress(progress))
    }
    if listing.malformedCount > 0 {
      warn("the server lists \(listing.malformedCount) blobs under names that are no CIDs")
    }
    if listing.isDoubtful {
      warn("the server's list of blobs may not be whole: it ends with a full page, or has no end")
    }
    if let fault = listing.fault {
      warn(
        "the server's list of blobs broke off after \(listing.cids.count); further blobs that no record refers to are not known: \(fault.text)"
      )
    }
    return listing
  }

  /// The account's history in the PLC directory; nil if it has none or it cannot be had.
  private func fetchPLCLog() async throws -> [UInt8]? {
    guard identity.did.method == "plc" else { return nil }
    do {
      return try await IdentityResolver(network: network).dids.plcLog(of: identity.did)
    } catch let error where !(error is CancellationError) {
      warn("the PLC audit log could not be had: \(error)")
      return nil
    }
  }

  // MARK: Into the archive

  private func append(
    _ fetched: RepositoryFetcher.Fetched, listing: BlobListing?, plcLog: [UInt8]?,
    with appender: ArchiveAppender, for target: ArchiveTarget
  ) async throws -> BackupReport {
    let repository = fetched.repository
    let description = try await appender.perform { [base] writer in
      try CARPacking(repository, { _ in }).pack(into: &writer, after: base)
    }
    let archive = try await appender.reader()
    let reconciliation = try BlobReconciliation(
      repository.inspection.blobs, inCAR: repository.lengthOfBlock, listing: listing,
      archive: archive, base: base)
    observer(
      .blobs(
        referenced: repository.inspection.blobs.entries.count, listed: reconciliation.listedCount,
        wanted: reconciliation.wanted.count))
    let moment = options.now()
    let intake = BlobIntake(reconciliation, observer: observer)
    for client in [client] + earlierClients {
      try await intake.fetch(
        from: client, of: identity.did, into: appender, options: options, folder: target.folder)
    }
    observer(.progress(BackupProgress(.committing)))
    let ledger = intake.ledger(at: moment)
    let extrasPages = try BlobLedger.pages(extras: ledger.extras)
    let missingPages = try BlobLedger.pages(missing: ledger.missing)
    let commit = repository.commit
    let snapshot = Snapshot(
      did: identity.did, handle: identity.handle, pds: identity.server,
      rev: commit.rev, commit: repository.inspection.header.roots[0], previous: nil,
      createdAt: moment, tool: options.tool, car: description,
      counts: Snapshot.Counts(
        records: repository.inspection.recordCount, nodes: repository.inspection.nodeCount,
        blocks: repository.inspection.blocks.count),
      blobs: ledger.counts,
      didDocument: ArchiveWriter.cid(document: identity.document) ?? base?.snapshot.didDocument,
      plcLog: ArchiveWriter.cid(document: plcLog) ?? base?.snapshot.plcLog,
      extrasPages: extrasPages.map(\.cid), missingPages: missingPages.map(\.cid),
      isComplete: repository.inspection.isComplete, hostSystem: options.hostSystem,
      durationMilliseconds: options.milliseconds() - begin, fetched: fetched.origin)
    let documents = [identity.document, plcLog]
    let (written, generation, isHealed) = try await appender.perform { [base] writer in
      try writer.append(documents: documents, pages: extrasPages + missingPages)
      if let base = base?.snapshot, base.isWhole, snapshot.saysNothingNew(after: base),
        let generation = try writer.endWithoutSnapshot()
      {
        return (base, generation, writer.isHealing)
      }
      var snapshot = snapshot
      snapshot.previous = writer.generation?.head?.cid
      return (snapshot, try writer.commit(snapshot), writer.isHealing)
    }
    let isUnchanged = base?.snapshot.commit == written.commit
    return BackupReport(
      path: target.path, snapshot: written, generation: generation,
      outcome: written.isWhole ? .complete : .incomplete, isRepositoryUnchanged: isUnchanged,
      bytesAdded: appender.bytesAdded(by: generation), isHealed: isHealed,
      damage: try isHealed || isUnchanged && options.checksHeld || archive.hasLostHead
        ? target.storedDamage() : StoredDamage(),
      milliseconds: options.milliseconds() - begin, missing: ledger.missing,
      warnings: warnings.all)
  }

  private func warn(_ text: String) {
    if warnings.add(text) { observer(.warning(text)) }
  }
}
