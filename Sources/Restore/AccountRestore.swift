internal import ATProtocol
internal import Archive
internal import CGlibc
internal import Files
package import HTTP
internal import IPLD
package import Snapshots
package import SystemPackage
internal import XRPC

/// Restores an account from an archive to a server: step by step, each once, guided by what servers
/// and directory say, and stopping before every step that cannot be undone.
///
/// ```
/// server ─► [signing key] ─► account ─► repository ─► blobs ─► comparison ─► preferences
///        ─► identity ─► activation ─► [deactivation of the old] ─► proof
/// ```
/// 1. Nothing is changed before everything that can be asked has been asked: ``RestorePlan``.
/// 2. The old server and the DID are not changed before the new server has everything that it is
///    going to have. Where the old server is gone, the DID first names a key of the owner's own: no
///    server accepts an account unless its key or its server vouches for it.
/// 3. An irreversible operation is in the journal before it is sent, and the directory is asked
///    about it before it is sent again.
/// 4. The state at the end is requested, and not remembered: ``RestoreSituation``.
package struct AccountRestore {
  let archived: ArchivedSnapshot
  let options: RestoreOptions
  let network: Network
  let did: DID
  let archive: FilePath
  let tell: @Sendable (RestoreEvent) -> Void
  /// What was done before; there is none where only blobs are sent.
  var journal: RestoreJournal?
  /// What was found out before anything was changed; nil where only blobs are sent.
  private(set) var plan: RestorePlan?
  /// The new server, asked as the owner.
  private var target: DestinationServer?
  /// Whether the account has been used there since an earlier run, so nothing of it is replaced.
  private(set) var isInUse = false
  /// The result, so far.
  package internal(set) var report = RestoreReport()

  /// A restore of a snapshot, or the continuation of one.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - archive: the archive's file, beside which the journal is kept.
  ///   - options: how.
  ///   - network: the way to servers.
  ///   - tell: called with what happens.
  package init(
    _ archived: ArchivedSnapshot, in archive: FilePath, _ options: RestoreOptions,
    network: Network, tell: @escaping @Sendable (RestoreEvent) -> Void
  ) {
    (self.archived, self.archive, self.options) = (archived, archive, options)
    (self.network, self.tell) = (network, tell)
    did = archived.snapshot.did
  }

  /// The server that the account leaves; nil if none is known.
  var old: SourceServer? { plan?.old }

  // MARK: The steps

  /// Does what is left to do, and reports each step.
  ///
  /// - Throws: ``RestoreError``, `PLCSuccessor.Fault`, ``BackupError``; what servers and directory
  ///   throw. ``report`` says what state both servers are in.
  package mutating func run() async throws {
    do {
      try await readSource()
      for step in options.steps {
        // What could not be fetched is not missing, and no step is to conclude so.
        try archived.reader.checkFetched()
        guard let outcome = try await outcome(of: step) else { continue }
        try finish(step, outcome)
      }
    } catch let question as RestoreQuestion {
      report.stoppedBefore = question
    } catch is DryRunEnd {
      // All that was asked for is done.
    } catch {
      report.situation = await situation()
      throw error
    }
    report.situation = await situation()
  }

  /// The end of a run whose operation went to ``RestoreOptions/dryRun``.
  struct DryRunEnd: Error {}

  /// The state of both servers; nil if only blobs were sent, or a signal has arrived.
  private func situation() async -> RestoreSituation? {
    guard !options.sendsBlobsOnly else { return nil }
    return await RestoreSituation.observed(
      report.newDID ?? did, new: options.target, old: options.asNew ? nil : report.oldServer,
      ownKey: ownKey.map { ($0, keyPath.string) }, network)
  }

  /// The signing key of the owner's own as `did:key:…`: the one in its file, which serves for any
  /// server; or the journal's, if that cannot be read.
  private var ownKey: String? {
    let noted = journal?.operation(for: .signingKey)?["verificationMethods"]?[
      PLCState.signingKeyName]?.string
    guard AtomicFile.isTaken(keyPath) else { return noted }
    do {
      return try OwnSigningKey.kept(in: keyPath, options.passphrase).verificationKey.didKey
    } catch {
      return noted
    }
  }

  /// The result of a step: what was answered, and whether it had been done before.
  typealias Outcome = (answer: String, wasDone: Bool)

  /// Takes a step, or finds that it has been taken; nil for one that is not needed, or not noted.
  private mutating func outcome(of step: RestoreStep) async throws -> Outcome? {
    switch step {
    case .server:
      try await options.sendsBlobsOnly ? findHome() : ask()
      return nil
    case .account:
      let plan = try have(plan)
      let (made, outcome) =
        options.asNew ? try await newAccount(plan) : try await account(plan)
      target = made
      isInUse =
        options.asNew ? journal?.has(.comparison) == true : try await plan.isActive(on: made)
      return outcome
    case .repository where isInUse, .blobs where isInUse, .comparison where isInUse:
      return options.asNew ? ("", true) : nil
    case .preferences where isInUse, .signingKey: return nil
    default: break
    }
    let target = try have(target)
    switch step {
    case .repository: return try await putRepository(target)
    case .blobs: return try await putBlobs(target)
    case .comparison:
      return try await options.sendsBlobsOnly ? compareBlobs(target) : compare(target)
    case .preferences:
      if !options.asNew { try checkMissing() }
      return try await putPreferences(target)
    case .identity:
      try await checkOldServer()
      return try await moveIdentity(target)
    case .activation: return try await activate(target)
    case .proof: return try await prove(target)
    default: return try await deactivateOld()
    }
  }

  // MARK: Before anything is sent

  /// Reads the snapshot.
  private mutating func readSource() async throws {
    let source = try await onOwnQueue { [archived, tell, sendsBlobsOnly = options.sendsBlobsOnly] in
      var source = try RestoreSource(archived) { tell(.progress($0)) }
      if !sendsBlobsOnly, let why = source.whyCommitIsUnfit {
        tell(.warning("\(why): the repository gets a new commit"))
        source = try RestoreSource(source, as: source.did, rewritesReferences: false)
      }
      // The memory for reading the repository is no longer needed, and the next steps take long.
      carpack_return_freed_memory()
      return source
    }
    report.source = source
    tell(.source(source))
    guard !options.sendsBlobsOnly else { return }
    for oddity in source.oddities { tell(.warning(oddity)) }
  }

  /// Finds the account's own server, and asks what it is like.
  private mutating func findHome() async throws {
    let home = try await DestinationServer.home(
      of: did, network, (options.password, options.authFactorToken), asking: options.asksForCode,
      tell: tell)
    target = home
    let server = (url: home.client.service, facts: try await home.call(.describeServer()))
    report.server = server
    tell(.server(server))
  }

  /// Asks both servers and the directory everything that can be asked, and changes nothing.
  private mutating func ask() async throws {
    let server = try await RestorePlan.server(at: options.target, network)
    report.server = server
    tell(.server(server))
    if options.sharedKeyFile == nil {
      journal = try RestoreJournal.of(archive, archived, to: server, asNew: options.asNew)
    }
    let plan = try await RestorePlan(
      have(report.source), to: server, options, journal, network: network
    ) { tell(.warning($0)) }
    self.plan = plan
    if let old = plan.old { journal?.from = old.url }
    report.oldServer = plan.old?.url
    if let old = plan.old, !old.standing.isActive {
      tell(.warning("\(old.url) \(old.standing.sentence)"))
    }
    report.losses = plan.losses
    if let obstacle = plan.obstacles.first {
      if case RestoreError.missingBlobs = obstacle { report.unrestored = plan.unrestored }
      throw obstacle
    }
    // It changes nothing, and is not noted: a restore that does not begin leaves no journal.
    report.steps.append(.server)
  }

  /// Makes sure once more, before the identity is moved, that nothing was written on the old server
  /// since the snapshot: sending may have taken days.
  private func checkOldServer() async throws {
    guard let old, plan?.isNamed == false, !options.acceptsOlder,
      case .active(let rev, let head) = try await ServerStanding(of: did, at: old.url, network),
      head != archived.snapshot.commit, archived.snapshot.rev.map({ $0 < rev }) ?? true
    else { return }
    throw RestoreError.newerThere(rev.text)
  }

  // MARK: The repository and what belongs to it

  /// Sends the repository: as it is, or as that of a new account.
  private mutating func putRepository(_ target: DestinationServer) async throws -> Outcome {
    if options.asNew {
      let source = try await onOwnQueue {
        [old = try have(report.source), new = target.did, rewrites = options.rewritesReferences] in
        try RestoreSource(old, as: new, rewritesReferences: rewrites)
      }
      report.source = source
      if source.rewrittenCount > 0 {
        tell(
          .warning("records that now name the new account, with new CIDs: \(source.rewrittenCount)")
        )
      }
    }
    let source = try have(report.source)
    return ("\(source.head)", try await !source.send(to: target))
  }

  private func blobs(on target: DestinationServer) throws -> BlobTransfer {
    BlobTransfer(
      source: try have(report.source), server: target, limit: report.server?.facts.blobLimit,
      connections: options.connections, tell: tell)
  }

  private mutating func putBlobs(_ target: DestinationServer) async throws -> Outcome {
    let sent = try await blobs(on: target).send()
    if let brokenList = sent.brokenList {
      // Reading all blobs back finds what the list would have named.
      guard options.comparesBlobs else { throw brokenList }
      tell(.warning("\(brokenList)"))
      report.brokenList = brokenList
    }
    report.sentBlobs += sent.count
    report.sentBytes += sent.bytes
    report.unrestored += sent.missing
    let run = options.sendsBlobsOnly ? "" : " in this run"
    return (
      "\(sent.count) sent\(run), \(sent.missing.count) missing",
      !options.sendsBlobsOnly && sent.count == 0
    )
  }

  /// Reads back what the server has; of blobs, from where an interrupted run stopped.
  private mutating func compare(_ target: DestinationServer) async throws -> Outcome {
    let source = try have(report.source)
    let status = try await target.call(.checkAccountStatus())
    if let count = status.records, count != source.recordCount {
      tell(
        .warning(
          "the new server has \(count) records, and the archive has \(source.recordCount)"))
    }
    do {
      try await source.compare(on: target) { [tell] in tell(.progress($0)) }
      report.areRecordsEqual = true
    } catch let error as RestoreError {
      report.areRecordsEqual = false
      throw error
    }
    guard options.comparesBlobs else { return ("records equal, blobs not read back", false) }
    let known = Set(report.unrestored.first.map(\.cid))
    let comparedBefore = journal?.comparedCount ?? 0
    let (equalCount, differing) = try await blobs(on: target).compare(
      except: known, from: comparedBefore
    ) { count in
      journal?.comparedCount = count
      try journal?.save()
    }
    report.equalBlobs = equalCount + comparedBefore
    report.unrestored += differing
    // The next run compares all of them again: a server may lose blobs in the meantime.
    journal?.comparedCount = 0
    return ("records equal, \(report.equalBlobs) blobs equal, \(differing.count) not", false)
  }

  /// Stops before anything else is changed if the new server lacks what it should have.
  private func checkMissing() throws {
    let missing = report.unrestored.count - report.unrestored.acceptedCount
    guard missing > 0, !options.acceptsMissing, plan?.isNamed == false else { return }
    throw RestoreError.missingBlobs(missing)
  }

  private mutating func putPreferences(_ target: DestinationServer) async throws -> Outcome? {
    guard journal?.has(.preferences) != true else { return ("", true) }
    guard let json = try archived.ownerAnswer(.preferences) else { return nil }
    do {
      try await target.perform(.putPreferences(json))
      return ("\(json.count) bytes", false)
    } catch let error as XRPCError where error.status != 401 {
      // Another server than this one may keep them, and be away: that holds nothing else up.
      report.losses.append("the preferences, which the new server did not accept: \(error)")
      report.hasAllPreferences = false
      return nil
    }
  }

  // MARK: Odds and ends

  /// What an earlier step has found.
  func have<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw SnapshotError.noSnapshot }
    return value
  }

  /// Asks whether something may be done.
  ///
  /// - Throws: the question if not.
  func ask(_ question: RestoreQuestion) throws {
    if !options.agrees(question) { throw question }
  }

  /// The file with the key with which the owner vouches if the old server is gone.
  ///
  /// The same key vouches for the account, whichever server it is restored to.
  var keyPath: FilePath {
    if let shared = options.sharedKeyFile { return shared }
    let earlier = FileNaming.beside(archive, ".restore-key.pem")
    // Version 0.1 had one for the archive.
    return AtomicFile.isTaken(earlier)
      ? earlier : FileNaming.beside(archive, ".\(did.methodSpecificID).restore-key.pem")
  }

  /// The account as the PLC directory has it.
  func present() async throws -> PLCUpdate {
    try await PLCUpdate(of: did, network: network, now: options.now)
  }

  /// The account's present DID document.
  func document() async throws -> DIDDocument {
    try await IdentityResolver(network: network).dids.document(of: did).document
  }

  /// Notes that a step is done.
  mutating func finish(_ step: RestoreStep, _ outcome: Outcome) throws {
    if !report.steps.contains(step) { report.steps.append(step) }
    if let journal, !outcome.wasDone || !journal.has(step) {
      let now = options.now()
      try self.journal?.note(step, outcome.answer, at: now)
    }
    tell(.step(step, outcome.answer, wasDone: outcome.wasDone))
  }

  /// Whether two URLs lead to the same server.
  static func isSame(_ one: String, _ other: String) -> Bool {
    do {
      return try HTTPURL(one).hasSameOrigin(as: HTTPURL(other))
    } catch {
      return one == other
    }
  }
}

extension ArchivedSnapshot {
  /// What the server answered to the account's owner alone, as JSON; nil if not all of it is there.
  ///
  /// - Throws: `ArchiveError`, ``SnapshotError`` if the archive cannot be read.
  func ownerAnswer(_ kind: OwnerData) throws -> [UInt8]? {
    guard let entry = try privateData()?.entries.first(where: { $0.endpoint == kind.rawValue }),
      entry.isWhole, let answer = entry.answers.first
    else { return nil }
    var json: [UInt8] = []
    try readPrivate(answer) { json.append(contentsOf: $0) }
    return json
  }
}

/// Sending an account's own server the blobs that it says it misses, and reading back the others.
///
/// Nothing else on it is changed, unless records are to be written again for blobs that the server
/// lists but has lost.
extension AccountRestore {
  /// Reads back the blobs that the server should have.
  private mutating func compareBlobs(_ server: DestinationServer) async throws -> Outcome? {
    guard options.comparesBlobs else { return nil }
    let known = Set(report.unrestored.first.map(\.cid))
    var compared = try await blobs(on: server).compare(except: known)
    if try await rewrite(compared.differing.first.map(\.cid), server) {
      compared = try await blobs(on: server).compare(except: known)
    }
    report.equalBlobs = compared.equalCount
    report.unrestored += compared.differing
    return ("\(compared.equalCount) equal, \(compared.differing.count) not", false)
  }

  /// Offers to write records again whose blobs the server lacks without knowing it; returns whether
  /// that was done.
  private func rewrite(_ differing: [CID], _ server: DestinationServer) async throws -> Bool {
    let path = FileNaming.beside(archive, ".rewrite.json")
    guard !differing.isEmpty || AtomicFile.isTaken(path), let repository = report.source?.repository
    else { return false }
    let restore = RecordRestore(repository, to: server)
    let finished = try await restore.finishPending(in: path)
    if finished > 0 {
      tell(.warning("records written again that an interrupted run had deleted: \(finished)"))
    }
    let plan = try await restore.plan(for: Set(differing))
    for (cid, why) in plan.hopeless { tell(.warning("\(cid) cannot be restored: \(why)")) }
    guard !plan.records.isEmpty else { return finished > 0 }
    guard options.rewritesRecords, options.agrees(.rewriting(records: plan.records.count)) else {
      tell(.rewritable(blobs: differing.count, records: plan.records.count))
      return finished > 0
    }
    try await restore.rewrite(plan.records, noting: path)
    return true
  }
}
