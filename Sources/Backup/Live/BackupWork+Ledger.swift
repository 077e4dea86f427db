internal import ATProtocol
internal import Archive
internal import IPLD
internal import XRPC

/// Going by the ledger of a snapshot whose repository has not changed, and ending with a new one.
///
/// 1. A run that learns nothing new writes nothing. That blobs were asked for in vain once more is
///    no news; ``ArchiveMark`` remembers it.
/// 2. As long as the ledger names all that is missing, the repository is not put together for it.
extension BackupWork {
  /// What came of going by the ledger.
  enum Retry {
    /// All that there is to do is done.
    case done(BackupReport)
    /// It takes the repository to go on, with what the server listed meanwhile, if it was asked.
    case needsRepository(BlobListing?)
  }

  /// The servers to ask for blobs, the account's own first.
  var sources: [BlobIntake.Source] {
    [BlobIntake.Source(client: client, name: identity.server, loggedInAt: loggedInAt)]
      + earlierSources
  }

  /// Asks again for what a snapshot lacks by its own ledger, as far as it is time for that.
  func retry(
    _ base: ArchivedSnapshot, _ schedule: RetrySchedule, in target: ArchiveTarget
  ) async throws -> Retry {
    guard let missing = try base.exhaustiveLedger() else { return .needsRepository(nil) }
    let fault = base.snapshot.blobs.listFault
    if !missing.isEmpty || fault != nil {
      // Blobs that have come otherwise are counted with the repository at hand.
      let reader = base.reader
      let states = try reader.states(missing.count) { missing.cids[$0] }
      guard reader.fileSize == reader.generation.committedLength,
        states.allSatisfy({ if case .missing = $0 { true } else { false } })
      else { return .needsRepository(nil) }
    }
    if let fault {
      let listing = try await listBlobs(base.snapshot.blobs.referenced)
      guard listing.fault?.kind == fault, try base.knows(listing, missing) else {
        return .needsRepository(listing)
      }
    }
    let reconciliation = BlobReconciliation(
      missing, of: base.snapshot, extras: try base.extras(), schedule: schedule)
    guard reconciliation.wantedCount > 0 else {
      try target.publish()
      noteCurrent(base, target)
      return .done(
        .unchanged(
          base, at: target.path, milliseconds: options.milliseconds() - begin, missing: missing,
          warnings: warnings.all))
    }
    observer(
      .blobs(
        referenced: base.snapshot.blobs.referenced, listed: nil,
        wanted: reconciliation.wantedCount))
    let header = try base.reader.carHeader
    return .done(
      try await appending(to: target, ArchiveOptions(level: options.level), carHeader: { header }) {
        try await ask(reconciliation, base, with: $0, for: target)
      })
  }

  private func ask(
    _ reconciliation: BlobReconciliation, _ base: ArchivedSnapshot, with appender: ArchiveAppender,
    for target: ArchiveTarget
  ) async throws -> BackupReport {
    observer(.progress(BackupProgress(.blobs)))
    let (ledger, moment) = try await fetchBlobs(reconciliation, with: appender, for: target)
    // What the CAR is, and where its blocks lie, is what it was.
    var snapshot = base.snapshot
    (snapshot.handle, snapshot.pds) = (identity.handle, identity.server)
    (snapshot.createdAt, snapshot.tool) = (moment, options.tool)
    snapshot.hostSystem = options.hostSystem
    snapshot.durationMilliseconds = options.milliseconds() - begin
    snapshot.blobs = ledger.counts
    snapshot.didDocument =
      ArchiveWriter.cid(document: identity.document) ?? base.snapshot.didDocument
    return try await end(
      snapshot, ledger, documents: [identity.document], base.reader, with: appender, for: target)
  }

  /// Asks for blobs, and answers what the ledger says then, and when they were asked for.
  func fetchBlobs(
    _ reconciliation: BlobReconciliation, with appender: ArchiveAppender, for target: ArchiveTarget
  ) async throws -> (BlobReconciliation.Ledger, moment: String) {
    let moment = options.now()
    let intake = BlobIntake(reconciliation, tellsArrivals: isFill, observer: observer)
    try await intake.fetch(
      from: sources, of: identity.did, into: appender, options: options, folder: target.folder)
    observer(.progress(BackupProgress(.committing)))
    return (intake.ledger(at: moment), moment)
  }

  /// Ends a backup: with a new snapshot if it says something that the one before does not say.
  ///
  /// - Parameters:
  ///   - snapshot: what is to be said, but for the pages of its lists.
  ///   - ledger: the lists.
  ///   - documents: documents about the account, as they were received.
  ///   - archive: the archive before.
  ///   - appender: what writes it.
  ///   - target: the file.
  func end(
    _ snapshot: Snapshot, _ ledger: BlobReconciliation.Ledger, documents: [[UInt8]?],
    _ archive: ArchiveReader, with appender: ArchiveAppender, for target: ArchiveTarget
  ) async throws -> BackupReport {
    let extrasPages = try BlobLedger.pages(extras: ledger.extras)
    let known = try base.flatMap { try $0.exhaustiveLedger() }
    let lacksNews = known.map { ledger.missing.saysNothingNew(after: $0) } ?? false
    let (written, generation, isHealed) = try await appender.perform { [base] writer in
      var snapshot = snapshot
      snapshot.extrasPages = extrasPages.map(\.cid)
      try writer.append(documents: documents, pages: extrasPages)
      if let base = base?.snapshot, lacksNews {
        snapshot.missingPages = base.missingPages
        if snapshot.saysNothingNew(after: base), let generation = try writer.endWithoutSnapshot() {
          return (base, generation, writer.isHealing)
        }
      }
      // A fill does not ask which blobs the server lists.
      if isFill { snapshot.blobs.listed = nil }
      snapshot.missingPages = []
      try BlobLedger.forEachPage(of: ledger.missing) { page in
        try writer.append(page.cid, page.bytes.span)
        snapshot.missingPages.append(page.cid)
      }
      snapshot.previous = writer.generation?.head?.cid
      return (snapshot, try writer.commit(snapshot), writer.isHealing)
    }
    if let base, written == base.snapshot {
      remember(ledger.missing, on: target)
      noteCurrent(base, target)
    }
    let isUnchanged = base?.snapshot.commit == written.commit
    return BackupReport(
      path: target.path, snapshot: written, generation: generation,
      outcome: written.isSettled ? .complete : .incomplete, isRepositoryUnchanged: isUnchanged,
      bytesAdded: appender.bytesAdded(by: generation), isHealed: isHealed,
      damage: try isHealed || isUnchanged && options.checksHeld || archive.hasLostHead
        ? target.storedDamage() : StoredDamage(),
      milliseconds: options.milliseconds() - begin, missing: ledger.missing,
      warnings: warnings.all)
  }

  /// Notes that the server has nothing newer than a snapshot, which a fill does not find out.
  private func noteCurrent(_ base: ArchivedSnapshot, _ target: ArchiveTarget) {
    guard !isFill else { return }
    base.markCurrent(at: options.now(), in: target.path)
  }

  /// Remembers since when all blobs that are lost for good have been asked for, without a new snapshot.
  private func remember(_ missing: BlobLedger.MissingList, on target: ArchiveTarget) {
    guard let manifest = base?.cid else { return }
    let times = missing.lazy.filter { $0.reason.isLasting && $0.accepted == nil }
      .compactMap { entry in
        entry.lastTried.flatMap { time in Moment(time).map { (moment: $0, time: time) } }
      }
    guard let earliest = times.min(by: { $0.moment.begins(before: $1.moment) }) else { return }
    ArchiveMark(time: earliest.time, manifest: manifest)
      .put(.tried, for: identity.did, on: target.path)
  }
}

extension ArchivedSnapshot {
  /// The ledger, if it names all that the snapshot lacks; nil if it does not, or cannot be read.
  ///
  /// A repository that was packed without its blobs does not list them.
  func exhaustiveLedger() throws -> BlobLedger.MissingList? {
    do {
      let ledger = try ledger()
      let unreferenced = ledger.unreferencedCount
      guard ledger.count - unreferenced == snapshot.blobs.missing,
        unreferenced == snapshot.blobs.listedMissing
      else { return nil }
      return ledger
    } catch let error where error.isDamage {
      return nil
    }
  }

  /// Whether a list names only blobs that the archive holds or the ledger lists.
  fileprivate func knows(_ listing: BlobListing, _ missing: BlobLedger.MissingList) throws -> Bool {
    let noted = IndexedCIDs(missing.cids)
    let cids = CIDList(listing.list.lazy.filter { noted.place(of: $0) == nil })
    return try reader.states(cids.count) { cids[$0] }.allSatisfy { $0.bodyLength != nil }
  }
}
