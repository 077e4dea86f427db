internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Verification

/// Uses the ledger of a snapshot whose repository has not changed, and ends with a new snapshot.
///
/// 1. A run that learns nothing new writes nothing. Another failed request for blobs is not new;
///    `ArchiveMark` remembers it. For a fill, which requests blobs, nothing else counts as new.
/// 2. As long as the ledger names all that is missing, the repository is not assembled for it.
extension BackupRun {
  /// Requests again the blobs that a snapshot's ledger lists as missing and that are due.
  ///
  /// - Returns: The report if nothing else is to be done; nil if the repository is needed.
  func retry(_ base: ArchivedSnapshot, _ schedule: RetrySchedule) async throws -> BackupReport? {
    guard let missing = try base.exhaustiveLedger() else { return nil }
    let fault = base.snapshot.blobs.listFault
    if !missing.isEmpty || fault != nil {
      // Blobs that have come otherwise are counted with the repository at hand.
      guard base.reader.fileSize == base.reader.generation.committedLength,
        try base.lacksAll(missing)
      else { return nil }
    }
    if let fault {
      let listing = try await listBlobs(base.snapshot.blobs.referenced)
      guard listing.fault == fault, try base.knows(listing, missing) else { return nil }
    }
    let reconciliation = try BlobReconciliation(
      adding: BlobTable(), to: missing, of: base, listing: nil, archive: base.reader,
      schedule: schedule)
    let standing = try standingOfBase(base)
    if reconciliation.wantedCount == 0 {
      try await takePrivateData()
      try await takeContext(base.visitRecords)
    }
    let isNews =
      bringsFurther || !standing.saysNothingNew(after: base.snapshot.standing)
      || !isFill && identity.isNews(after: base.snapshot)
    guard reconciliation.wantedCount > 0 || isNews else {
      try await target.publish()
      noteCurrent(base)
      noteIdentity(base.snapshot)
      return BackupReport.unchanged(
        base, at: target.name, milliseconds: options.milliseconds() - begin, missing: missing,
        warnings: warnings, lacksPrivateData: lacksPrivateData, context: context?.outcome)
    }
    return try await write(
      FoundRepository(of: base, reconciliation), schedule, plcLog: identity.log, standing,
      lookedUpIn: base.reader)
  }

  /// Opens the archive, appends a repository and the blobs that are wanted, and gives the file its
  /// name; what has arrived is kept if that fails.
  ///
  /// - Parameters:
  ///   - fetched: the repository.
  ///   - schedule: which blobs are requested again.
  ///   - plcLog: the account's history in the PLC directory, if it is known.
  ///   - standing: the doubts about the account.
  ///   - archive: where the wanted blobs were looked up; nil to look when the repository is there.
  func write(
    _ fetched: FoundRepository, _ schedule: RetrySchedule, plcLog: [UInt8]?, _ standing: Standing,
    lookedUpIn archive: ArchiveReader? = nil
  ) async throws -> BackupReport {
    observer(.progress(BackupProgress(.blobs)))
    let storage = try target.storage()
    var archiveOptions = archiveOptions
    // What is committed to a file that has no name yet is continued, and the repository has been
    // compared with it.
    archiveOptions.startsOver = target.isNew && target.reader == nil
    let appender = try await onOwnQueue { [archiveOptions, name = target.name] in
      do {
        return try ArchiveAppender(storage, carHeader: fetched.header, options: archiveOptions)
      } catch let error as ArchiveError {
        throw error.of(name)
      }
    }
    do {
      var draft = fetched.draft
      draft.standing = standing
      draft.car = try await appender.perform { writer in try fetched.pack(&writer) }
      let archive = if let archive { archive } else { try await appender.reader() }
      let reconciliation = try fetched.reconcile(listing, archive, schedule)
      observer(
        .blobs(
          referenced: draft.blobs.referenced, listed: reconciliation.listedCount,
          wanted: reconciliation.wantedCount))
      var facts = AccountFacts()
      (facts.handle, facts.pds) = (identity.handle, identity.server)
      (facts.didDocument, facts.plcLog) = (identity.document, plcLog)
      let report = try await end(
        draft, facts, reconciliation, archive, storage, fetched.visitBlocks, with: appender)
      try await target.publish()
      return report
    } catch {
      await appender.keepWhatArrived()
      throw error
    }
  }

  /// Fetches blobs and ends a backup: with a new snapshot if it says something that the previous
  /// one does not, and with another if other services then bring something new.
  private func end(
    _ draft: Snapshot, _ facts: AccountFacts, _ reconciliation: BlobReconciliation,
    _ archive: ArchiveReader, _ storage: any ArchiveStorage, _ visitBlocks: @escaping BlockVisitor,
    with appender: ArchiveAppender
  ) async throws -> BackupReport {
    let moment = options.now()
    let downloads = try BlobDownloads(
      reconciliation, of: identity.did, into: appender, folder: target.folder,
      pieces: target.pieces(), options: options, loggedInAt: loggedInAt, tellsArrivals: isFill,
      observer: observer)
    try await downloads.fetch(from: [client] + (earlierServers ?? []))
    observer(.progress(BackupProgress(.committing)))
    var ledger = downloads.ledger(at: moment)
    // A fill does not ask which blobs the server lists.
    if isFill { ledger.counts.listed = nil }
    var ending = try await end(draft, facts, ledger, after: base, in: storage, with: appender)
    var bytesAdded = appender.bytesAdded(by: ending.generation)
    if owesFurther {
      // Other services may be slow or away, and what is public counts by then.
      try await target.publish()
      try await takePrivateData()
      try await takeContext(visitBlocks)
      if bringsFurther {
        let count: UInt64
        (ending, count) = try await endOnceMore(behind: ending, facts, ledger, in: storage)
        bytesAdded += count
      }
    }
    let snapshot = ending.snapshot
    // What an interrupted run has left of this one has been written again.
    let lost = appender.lost.filter { $0.member != snapshot.member }
    for loss in lost { warn("lost: \(loss)") }
    noteIdentity(snapshot)
    if let base, ending.isUnchanged {
      remember(ledger.missing)
      noteCurrent(base)
    } else if let head = ending.generation.head, !isFill, snapshot.blobs.listed == nil {
      // The repository was not fetched, so the snapshot itself does not say that it was checked.
      ArchiveMark.current.put(options.now(), of: identity.did, about: head.cid, on: target.path)
    }
    let isRepositoryUnchanged = base?.snapshot.commit == snapshot.commit
    return BackupReport(
      name: target.name, snapshot: snapshot, generation: ending.generation,
      outcome: snapshot.isSettled && !lacksPrivateData && lost.isEmpty ? .complete : .incomplete,
      isRepositoryUnchanged: isRepositoryUnchanged, bytesAdded: bytesAdded,
      isHealed: ending.isHealed,
      damage: try ending.isHealed || isRepositoryUnchanged && options.checksHeld
        || appender.isBehindDamage || archive.hasLostHead ? target.storedDamage() : StoredDamage(),
      milliseconds: options.milliseconds() - begin, missing: ledger.missing, warnings: warnings,
      identityChanges: ending.isUnchanged ? [] : try identityChanges(),
      lacksPrivateData: lacksPrivateData, context: context?.outcome)
  }

  /// Ends a write with a snapshot, unless the one before says the same.
  private func end(
    _ draft: Snapshot, _ facts: AccountFacts, _ ledger: BlobLedger, after base: ArchivedSnapshot?,
    in storage: any ArchiveStorage, with appender: ArchiveAppender
  ) async throws -> SnapshotBuilder.Ending {
    var builder = SnapshotBuilder(
      draft, facts, ledger, after: base,
      SnapshotBuilder.Provenance(
        tool: options.tool, createdAt: options.now(), hostSystem: options.hostSystem,
        milliseconds: { [options, begin] in options.milliseconds() - begin }))
    if let privateData {
      if privateData.isNews {
        try storage.restrictToOwner()
        if !storage.isSealed, base?.holdsPrivateData != true {
          warn(
            """
            private data goes into a file that is not encrypted: "carpack seal" encrypts it, --recipient \
            a new archive
            """
          )
        }
      }
      try builder.add(privateData)
    }
    if let context { try builder.add(context.received) }
    return try await appender.perform { [builder, isFill] writer in
      try builder.end(&writer, wantsBlobs: isFill)
    }
  }

  /// Adds what other services have given, behind a snapshot of all that is public.
  ///
  /// - Returns: How the run has ended, and how many bytes were added now.
  private func endOnceMore(
    behind first: SnapshotBuilder.Ending, _ facts: AccountFacts, _ ledger: BlobLedger,
    in storage: any ArchiveStorage
  ) async throws -> (SnapshotBuilder.Ending, UInt64) {
    guard let cid = first.isUnchanged ? base?.cid : first.generation.head?.cid else {
      throw SnapshotError.noSnapshot
    }
    let archiveOptions = archiveOptions
    let (before, appender) = try await onOwnQueue {
      let before = try ArchivedSnapshot(cid, in: ArchiveReader(storage.map()))
      let header = before.snapshot.car.header
      return (before, try ArchiveAppender(storage, carHeader: header, options: archiveOptions))
    }
    var ledger = ledger
    (ledger.counts.new, ledger.counts.newBytes) = (0, 0)
    var ending = try await end(
      before.snapshot, facts, ledger, after: before, in: storage, with: appender)
    let came = first.snapshot.blobs
    (ending.snapshot.blobs.new, ending.snapshot.blobs.newBytes) = (came.new, came.newBytes)
    ending.isUnchanged = ending.isUnchanged && first.isUnchanged
    ending.isHealed = ending.isHealed || first.isHealed
    return (ending, appender.bytesAdded(by: ending.generation))
  }

  /// Whether other services are still to be asked.
  private var owesFurther: Bool {
    options.keepsPrivateData && privateData == nil || options.context != nil && context == nil
  }

  /// Whether other services have brought something new.
  private var bringsFurther: Bool {
    privateData?.isNews == true || context?.received.isNews == true
  }

  /// How the archive is appended to.
  private var archiveOptions: ArchiveOptions {
    var archiveOptions = ArchiveOptions(level: options.level)
    archiveOptions.appendsBehindDamage = true
    archiveOptions.parity = options.parity
    return archiveOptions
  }

  /// Whether private data was requested, and some of it did not come.
  private var lacksPrivateData: Bool { privateData?.failures.isEmpty == false }

  /// Notes that the server has nothing newer than a snapshot, which a fill does not find out.
  private func noteCurrent(_ base: ArchivedSnapshot) {
    guard !isFill else { return }
    base.markCurrent(at: options.now(), in: target.path)
  }

  /// Remembers since when all missing blobs have been requested, without a new snapshot.
  private func remember(_ missing: BlobLedger.MissingList) {
    guard let manifest = base?.cid else { return }
    let times = missing.lazy.filter { $0.accepted == nil }
      .compactMap { entry in
        entry.lastTried.flatMap { time in Moment(time).map { (moment: $0, time: time) } }
      }
    guard let earliest = times.min(by: { $0.moment.begins(before: $1.moment) }) else { return }
    ArchiveMark.tried.put(earliest.time, of: identity.did, about: manifest, on: target.path)
  }
}

extension ArchivedSnapshot {
  /// Whether a list names only blobs that the archive holds or the ledger lists.
  fileprivate func knows(_ listing: BlobListing, _ missing: BlobLedger.MissingList) throws -> Bool {
    let noted = IndexedCIDs(missing.cids)
    let cids = CIDList(listing.list.lazy.filter { noted.place(of: $0) == nil })
    return try reader.states(cids.count) { cids[$0] }.allSatisfy { $0.bodyLength != nil }
  }
}

/// The doubts about the account, and what is new about its identity.
extension BackupRun {
  /// The standing of a snapshot whose repository is the one of the snapshot before.
  func standingOfBase(_ base: ArchivedSnapshot) throws -> Standing {
    let before = base.snapshot.standing
    var standing = Standing()
    // The server has just named this commit as its newest, or was not asked.
    for doubt in before.doubts where doubt != .handle && (isFill || doubt != .behind) {
      standing.add(doubt, accepting: options.accepted)
    }
    if !options.accepted.isDisjoint(with: [.rollback, .fork]) {
      // What earlier versions and `pack` wrote does not say so itself.
      for disruption in try SnapshotHistory(of: base.reader).disruptions
      where !disruption.isAccepted {
        standing.add(disruption.kind, accepting: options.accepted)
      }
    }
    return self.standing(after: standing)
  }

  /// A standing that includes the doubts about the handle.
  func standing(after repository: Standing) -> Standing {
    var standing = repository
    let before = base?.snapshot.standing
    switch identity.isHandleConfirmed {
    case true?: break
    case false?:
      let isAcceptedStill =
        before?.accepted.contains(.handle) == true && base?.snapshot.handle == identity.handle
      standing.add(.handle, accepting: isAcceptedStill ? [.handle] : options.accepted)
    case nil:
      standing.takeHandle(from: before)
      if options.accepted.contains(.handle), standing.doubts.remove(.handle) != nil {
        standing.accepted.insert(.handle)
      }
    }
    return standing
  }

  /// What is new about the account's identity, a sentence each.
  func identityChanges() throws -> [String] {
    guard let base else { return [] }
    var changes: [String] = []
    func note(_ what: String, _ old: String?, _ new: String?) {
      guard old != new else { return }
      changes.append("its \(what) is \(new ?? "not known") now, and was \(old ?? "not known")")
    }
    note("handle", base.snapshot.handle?.text, identity.handle?.text)
    if let new = DIDDocument(kept: identity.document),
      let old = try DIDDocument(kept: base.readable { try $0.didDocument() })
    {
      note("server", old.pds, new.pds)
      note("key", old.signingKey?.didKey, new.signingKey?.didKey)
    }
    return changes
  }

  /// Notes that the handle was confirmed, which no manifest says.
  func noteIdentity(_ snapshot: Snapshot) {
    if identity.isHandleConfirmed == true {
      snapshot.markIdentity(at: options.now(), in: target.path)
    }
  }
}

extension ArchivedSnapshot {
  /// The last key that a DID document of the account named.
  func earlierKey() throws -> VerificationKey? {
    let history = try SnapshotHistory(of: reader)
    let evidence = try IdentityEvidence(of: snapshot.did, history, in: history.reader)
    return evidence.documents.last { $0.document?.signingKey != nil }?.document?.signingKey
  }
}

extension AccountIdentity {
  /// Whether the standing says something that a snapshot does not.
  func isNews(after snapshot: Snapshot) -> Bool {
    let isOther = { (document: [UInt8]?, known: CID?) in
      document.map { CID(codec: .raw, hashing: $0.span) != known } ?? false
    }
    return handle != snapshot.handle || isOther(document, snapshot.didDocument)
      || isOther(log, snapshot.plcLog)
  }
}
