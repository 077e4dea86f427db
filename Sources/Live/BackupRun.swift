internal import ATProtocol
internal import Archive
internal import Files
internal import HTTP
internal import Snapshots
internal import XRPC

/// The backup of an account whose identity is known, from its server, into its archive: the steps
/// in their order.
///
/// One task uses it.
final class BackupRun {
  let network: Network
  let options: AccountBackup.Options
  let observer: @Sendable (BackupEvent) -> Void
  let identity: AccountIdentity
  let client: XRPCClient
  /// The only server at which this run is logged in; nil if there is none.
  let loggedInAt: String?
  /// Servers where the account was before, from which a fill requests blobs; nil for a backup.
  let earlierServers: [XRPCClient]?
  /// Whether only missing blobs are requested, and each that arrives is reported.
  var isFill: Bool { earlierServers != nil }
  /// The archive.
  let target: DestinationArchive
  /// The snapshot that it has of the account.
  let base: ArchivedSnapshot?
  /// When the run began, in milliseconds.
  let begin: Int
  /// The warnings of all steps.
  private(set) var warnings: [String] = []
  /// The owner's private data, once it has been requested.
  private(set) var privateData: ReceivedPrivateData?
  /// What an app view shows of others, once it has been asked.
  private(set) var context: (received: ReceivedContext, outcome: ContextOutcome)?
  /// The blobs that the server lists, if it was asked.
  var listing: BlobListing?

  /// A backup, or a fill if there are earlier servers: begins a session if one is wanted.
  ///
  /// - Parameters:
  ///   - backup: how to back up.
  ///   - identity: who the account is.
  ///   - account: what it was called.
  ///   - target: the archive.
  ///   - base: the snapshot that it has of the account.
  ///   - begin: when the run began, in milliseconds.
  ///   - earlierServers: servers where the account was before; nil for a backup.
  /// - Throws: as ``AccountIdentity/session(_:for:network:)`` does.
  init(
    _ backup: AccountBackup, _ identity: AccountIdentity, _ account: ATIdentifier,
    _ target: DestinationArchive, _ base: ArchivedSnapshot?, begin: Int,
    earlierServers: [XRPCClient]? = nil
  ) async throws {
    (network, options, observer) = (backup.network, backup.options, backup.observer)
    (self.base, self.begin) = (base, begin)
    (self.target, self.earlierServers) = (target, earlierServers)
    observer(.resolved(identity.did, handle: identity.handle, server: identity.server))
    let session = try await identity.session(options.session, for: account, network: network)
    var known = identity
    if let session, try await !session.isActive() { known.excuseInactive() }
    self.identity = known
    client = XRPCClient(
      service: identity.server, network: network, session: session, admin: options.admin)
    loggedInAt = session == nil ? nil : client.service
  }

  /// Backs up, or fills: finds the repository, asks for the blobs that are wanted, and ends with a
  /// snapshot of what there is.
  func run() async throws -> BackupReport {
    warnOfState()
    var report = try await backUp()
    report.damage.isCutOff = target.isCutOff
    report.isBehindOlderCopy = target.isOlderCopy
    if report.outcome == .complete { try target.pieces()?.removeAll() }
    if !isFill, report.outcome == .complete { try target.acceptLoss() }
    return report
  }

  private func backUp() async throws -> BackupReport {
    if options.isToBeSealed, !target.isNew, try !target.storage().isSealed {
      warn(AccountBackup.unsealed)
    }
    // A fill does not ask whether the repository has changed.
    let newest = try await newestCommit()
    let kept = base.flatMap {
      isFill || $0.snapshot.commit == newest?.cid && $0.snapshot.isComplete ? $0 : nil
    }
    let schedule =
      isFill
      ? RetrySchedule.always
      : .daily(
        now: options.now(),
        triedAgain: ArchiveMark.tried.time(of: identity.did, about: base?.cid, on: target.path))
    if let kept, try isUndamaged(), let report = try await retry(kept, schedule) { return report }
    if isFill, let kept {
      let found = try await restored(kept)
      // What a list that broke off would have named is not known to be missing.
      if listing == nil, kept.snapshot.blobs.listFault != nil {
        try await listBlobs(found.draft.blobs.referenced)
      }
      return try await write(
        found, schedule, plcLog: identity.log ?? kept.plcLog(), standingOfBase(kept))
    }
    observer(.progress(BackupProgress(.repository)))
    let log = try await fetchPLCLog()
    let verifier = try verifier(by: log)
    if !verifier.hasKey {
      warn(
        "no key of the account is known, so the commit was not checked: the snapshot is unsigned")
    }
    let found = try await repository(kept, at: newest, verifier)
    observer(
      .repository(
        records: found.draft.counts.records, bytes: UInt64(found.byteCount),
        isIncremental: kept == nil && found.draft.fetched?.since != nil))
    if listing == nil { try await listBlobs(found.draft.blobs.referenced) }
    var standing = standing(
      after: try Standing.of(
        found.draft, after: base, newest: newest?.rev, accepting: options.accepted,
        now: options.now()))
    if verifier.hasKey {
      standing.doubts.remove(.unsigned)
    } else {
      standing.doubts.insert(.unsigned)
    }
    for doubt: Standing.Doubt in [.behind, .future] where standing.doubts.contains(doubt) {
      warn("the account \(doubt)")
    }
    return try await write(found, schedule, plcLog: log, standing)
  }

  /// Warns of what is odd about the account, and about an existing archive.
  func warnOfState() {
    identity.warnings.forEach(warn)
    target.losses.forEach(warn)
  }

  /// The newest commit; nil if it is not asked for, or the server does not say.
  private func newestCommit() async throws -> LatestCommit? {
    if isFill { return nil }
    if let newest = options.newest { return newest }
    return try await client.latestCommit(of: identity.did)
  }

  /// Whether what is stored matches its checksums, as far as that is checked.
  private func isUndamaged() throws -> Bool {
    guard options.checksHeld, try !target.storedDamage().isNone else { return true }
    warn("the archive is damaged; damaged data that the server still has is written again")
    return false
  }

  // MARK: What the server has

  /// Asks which blobs the server lists, and uses the list as far as it comes.
  ///
  /// - Parameter referenced: how many blobs records refer to.
  @discardableResult
  func listBlobs(_ referenced: Int) async throws -> BlobListing {
    observer(.progress(BackupProgress(.listing)))
    let listing = try await BlobListing.gather(
      of: identity.did, from: client, referenced: referenced
    ) { [observer] count in
      observer(.progress(BackupProgress(.listing, blobsTotal: count)))
    }
    if listing.malformedCount > 0 {
      warn("the server lists blobs under names that are not CIDs: \(listing.malformedCount)")
    }
    if let failure = listing.failure {
      warn(
        "the server's list of blobs is incomplete (\(listing.list.count) came), so further blobs that no record refers to are not known: \(failure)"
      )
    }
    self.listing = listing
    return listing
  }

  /// What decides whether a commit is the account's own.
  ///
  /// - Parameter log: the account's log as it came; nil to use the one that the archive has.
  /// - Throws: ``BackupError/notGenuine(_:)`` for a log that is not valid.
  private func verifier(by log: [UInt8]?) throws -> CommitVerifier {
    var verifier = try CommitVerifier(
      did: identity.did, key: identity.key,
      log: log ?? base?.readable { try $0.plcLog() }, now: options.now())
    if !verifier.hasKey, let key = try base?.earlierKey() {
      warn("the DID document names no usable key; the last key that it named is used instead")
      verifier.key = key
    }
    return verifier
  }

  /// The account's history in the PLC directory; nil if it has none or it cannot be fetched.
  private func fetchPLCLog() async throws -> [UInt8]? {
    guard identity.did.method == "plc", identity.log == nil else { return identity.log }
    let directory = IdentityResolver(network: network).dids
    do {
      do {
        return try await directory.plcLog(of: identity.did)
      } catch IdentityError.didNotFound {
        // "carpack serve" has no audit log of an archive whose log came without times.
        warn("the directory has no PLC audit log of \(identity.did)")
      }
      // A log with times says more than a newer one without.
      let kept = try base?.readable { try $0.plcLog() }
      let hasTimes = try kept.map { try PLCLog($0.span, of: identity.did).isAudit } ?? false
      return hasTimes ? nil : try await directory.untimedPLCLog(of: identity.did)
    } catch IdentityError.didNotFound {
      return nil
    } catch let error where !(error is CancellationError) {
      warn("the PLC audit log could not be fetched: \(error)")
      return nil
    }
  }

  /// Requests the owner's private data, if it is wanted and has not been requested.
  ///
  /// It comes last: other services answer most of it, and they may be slow or away.
  func takePrivateData() async throws {
    guard options.keepsPrivateData, privateData == nil else { return }
    privateData = try await fetchPrivateData()
  }

  /// Requests what is new from the app view, if that is wanted and has not been requested.
  func takeContext(_ visitBlocks: @escaping BlockVisitor) async throws {
    guard let options = options.context, context == nil else { return }
    context = try await fetchContext(options, visitBlocks)
  }

  func warn(_ text: String) {
    guard !warnings.contains(text) else { return }
    warnings.append(text)
    observer(.warning(text))
  }
}
