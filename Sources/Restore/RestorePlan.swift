package import ATProtocol
internal import Archive
internal import Files
package import HTTP
internal import IPLD
internal import LibC
package import Snapshots
package import SystemPackage
internal import XRPC

/// What a restore to a server would do, what would be missing, and what prevents it: found out from
/// the archive, both servers and the directory before anything is changed.
///
/// A restore finds out the same and does not begin if there is an obstacle: with a recovery key its
/// first step changes the DID, and an obstacle found later would leave a working account halfway
/// between two servers.
package struct RestorePlan: Sendable {
  /// What is to be restored.
  package let source: RestoreSource
  /// The new server.
  package let server: RestoreServer
  /// What the new server says of the account.
  package let there: ServerStanding
  /// The old server; nil if none is known.
  package let old: SourceServer?
  /// The account in the directory; nil if it has none there.
  package let present: PLCUpdate?
  /// Whether the DID names the new server already.
  package let isNamed: Bool
  /// The account's handle.
  package let handle: Handle?
  /// The handle that it is going to have on the new server; nil if that is not known.
  package private(set) var newHandle: Handle?
  /// How many blobs would be sent, and how many bytes those have.
  package private(set) var upload: (count: Int, bytes: UInt64) = (0, 0)
  /// The blobs that would be missing.
  package private(set) var unrestored = UnrestoredBlobs()
  /// The rotation keys that are the old server's, each with what shows that.
  package private(set) var oldServersKeys: [OldServersKey] = []
  /// What the account would lack, in sentences.
  package private(set) var losses: [String] = []
  /// Whether the archive has preferences to give back.
  package let hasPreferences: Bool
  /// What has to be put right or provided first, the most important first.
  package private(set) var obstacles: [any Error] = []

  private let options: RestoreOptions
  /// What earlier runs have done; nil where none is kept.
  private let journal: RestoreJournal?
  private let network: Network
  private let document: DIDDocument?

  /// How many blobs the reference server accepts a day.
  private static let uploadsADay = 1000
  /// The longest repository that the reference server accepts if its operator sets no limit, in
  /// bytes.
  package static let defaultImportLimit: UInt64 = 5 << 20

  /// The rotation keys that may change the account, in the order of their authority.
  package var rotationKeys: [String] { present?.rotationKeys ?? [] }
  /// How many days sending the blobs takes with the reference server's limit.
  package var uploadDays: Int { (upload.count + Self.uploadsADay - 1) / Self.uploadsADay }
  /// Whether something was written to the account since the snapshot was made.
  package var isOutdated: Bool {
    guard !isNamed, case .active(let rev, let head)? = old?.standing else { return false }
    let snapshot = source.archived.snapshot
    return head != snapshot.commit && snapshot.rev.map { $0 < rev } ?? true
  }
  /// Whether the account lives on the new server already.
  package var isMoved: Bool { isNamed && there.isActive }
  /// Whether a new account is made of the archive.
  package var isOfNewAccount: Bool { options.asNew }
  /// The account on the new server; nil for a new one that is not made yet.
  package var did: DID? { options.asNew ? journal?.newDID : source.did }
  /// The steps that are left, as far as the journal says.
  package var stepsLeft: [RestoreStep] {
    if isMoved { return [] }
    // What was noted of an account that the server does not have counts for nothing.
    let noted = options.asNew || there.isThere ? journal : nil
    return options.steps.filter { step in
      switch step {
      case .server: false
      case .preferences where !hasPreferences: false
      case .deactivation where !options.deactivatesOld: false
      // What was compared is compared again, unless it is a new account, which may be in use.
      case .comparison where !options.asNew: true
      // It changes nothing, except that a new account's server may have to sign.
      case .proof where !options.asNew: false
      default: noted?.has(step) != true
      }
    }
  }
  /// The server that sends a code by mail for the operation; nil if none is needed.
  package var codeSender: String? {
    let isOldAsked = isOldThere && source.did.method == "plc" && options.recoveryKey == nil
    return isOldAsked && options.mailCode == nil && stepsLeft.contains(.identity) ? old?.url : nil
  }
  /// Whether a server without limits of its operator's would refuse the repository.
  package var mayBeTooLarge: Bool {
    stepsLeft.contains(.repository) && source.byteCount > Self.defaultImportLimit
  }
  /// Whether the old server answers and has the account.
  var isOldThere: Bool { old?.standing.isThere == true }

  /// Finds it out.
  ///
  /// - Parameters:
  ///   - source: what is to be restored.
  ///   - server: the new server.
  ///   - options: how; without a password of the old server's there is no login there.
  ///   - journal: what earlier runs have done.
  ///   - network: the way to servers.
  ///   - tell: called with what a person should know.
  /// - Throws: ``BackupError`` and `ArchiveError` if the archive cannot be read; what logging in on
  ///   the old server, the new server and the directory throw.
  init(
    _ source: RestoreSource, to server: RestoreServer, _ options: RestoreOptions,
    _ journal: RestoreJournal?, network: Network, tell: (String) -> Void
  ) async throws {
    (self.source, self.server, self.options, self.network) = (source, server, options, network)
    self.journal = journal
    let archived = source.archived
    let did = archived.snapshot.did
    hasPreferences = try archived.ownerAnswer(.preferences) != nil
    if options.asNew {
      (document, present, old, isNamed) = (nil, nil, nil, false)
      handle = archived.snapshot.handle
    } else {
      do {
        document = try await IdentityResolver(network: network).dids.document(of: did).document
      } catch let error as IdentityError
        where did.method == "web" && (error.kind == .unavailable || error.kind == .temporary)
      {
        document = nil
        tell("\(error)")
      }
      handle = document?.handle ?? archived.snapshot.handle
      present =
        did.method == "plc"
        ? try await PLCUpdate(of: did, network: network, now: options.now) : nil
      isNamed = document?.pds.map { AccountRestore.isSame($0, options.target) } ?? false
      // The server that the DID names, or, once that is the new one, the one before it.
      let earlier = present?.log.servers.last { !AccountRestore.isSame($0.text, options.target) }
      let url = isNamed ? earlier?.text : document?.pds
      if let url {
        old = try await SourceServer(url, of: did, called: handle, network, options)
      } else {
        old = nil
      }
    }
    there =
      options.asNew
      ? .absent("") : try await ServerStanding(of: did, at: options.target, network)
    try countBlobs()
    oldServersKeys = try await findOldServersKeys(tell)
    losses = try await onOwnQueue { [self] in try findLosses() }
    try await findObstacles(tell)
  }

  /// Reads a snapshot, and finds it out; logs in where the account is on the new server already, as
  /// a restore does at its turn.
  ///
  /// - Parameter archive: the archive's file, beside which the journal is; nil for no journal.
  /// - Throws: as the other one does; ``RestoreError/otherPassword(_:)``; ``BackupError`` for a
  ///   snapshot that cannot be restored.
  package init(
    of archived: ArchivedSnapshot, in archive: FilePath?, _ options: RestoreOptions,
    network: Network, tell: (String) -> Void
  ) async throws {
    let source = try await onOwnQueue { try RestoreSource(archived) { _ in } }
    let server = try await Self.server(at: options.target, network)
    let journal = try archive.map {
      try RestoreJournal.of($0, archived, to: server, asNew: options.asNew, locked: false)
    }
    try await self.init(source, to: server, options, journal, network: network, tell: tell)
    guard there.isThere, !options.password.text.isEmpty else { return }
    let target = try await DestinationServer.existing(
      of: source.did, or: journal?.handle ?? handle, options, network)
    // Of an active account the server said it already.
    guard !there.isActive else { return }
    do { _ = try await isActive(on: target) } catch let obstacle as RestoreError {
      obstacles.append(obstacle)
    }
  }

  /// What a server says of itself.
  ///
  /// - Throws: what it throws.
  static func server(at url: String, _ network: Network) async throws -> RestoreServer {
    let client = XRPCClient(service: url, network: network)
    return (client.service, try await client.call(.describeServer()))
  }

  private mutating func countBlobs() throws {
    let (limit, areSent) = (server.facts.blobLimit, !stepsLeft.contains(.blobs))
    // Those that are kept in files while they are sent, the longest first.
    var long: [UInt64] = []
    var (upload, unrestored) = ((count: 0, bytes: UInt64(0)), UnrestoredBlobs())
    try source.forEachBlob { entry, state in
      let reason = UnrestoredBlob.Reason(
        state, isAccepted: source.accepted.contains(entry.cid), limit: limit)
      if let reason {
        unrestored.add(entry.cid, of: source, reason)
      } else if !areSent, case .held(let length) = state {
        upload.count += 1
        upload.bytes += length
        guard length > RequestBody.maximumInMemory else { return }
        long.insert(length, at: long.partitioningIndex { $0 < length })
        if long.count > options.connections { long.removeLast() }
      }
    }
    let folder = TemporaryFile.defaultFolder
    if let room = TemporaryFile.room(in: folder), room < long.reduce(0, +) {
      obstacles.append(BackupError.system("keep blobs in \(folder) while they are sent", ENOSPC))
    }
    (self.upload, self.unrestored) = (upload, unrestored)
  }

  // MARK: What stands in the way

  private mutating func findObstacles(_ tell: (String) -> Void) async throws {
    if case .active(_, let head) = there,
      let obstacle = whyKept(isActive: true, isEmpty: false, head: head)
    {
      obstacles.append(obstacle)
    }
    if let obstacle = try await whyMisnamed() { obstacles.append(obstacle) }
    let lacking = try await ServerNeeds.lacking(on: server.url, options, network)
    if !lacking.isEmpty { obstacles.append(RestoreError.lacks(server.url, lacking)) }
    if case .silent(let why) = there { obstacles.append(RestoreError.silent(server.url, why)) }
    if !options.acceptsOlder, !options.isRehearsal, isOutdated,
      case .active(let rev, _)? = old?.standing
    {
      obstacles.append(RestoreError.newerThere(rev.text))
    }
    try checkKeys()
    let missing = unrestored.count - unrestored.acceptedCount
    if missing > 0, !options.acceptsMissing, !options.isRehearsal, !options.asNew, !isNamed {
      obstacles.append(RestoreError.missingBlobs(missing))
    }
    // Where the account is, only a login counts.
    guard !there.isThere else { return }
    do {
      let handle = try await chooseHandle(tell)
      // A new account of an earlier run has it, or that run was refused it.
      if !options.asNew || handle != journal?.handle { try await check(handle, tell) }
      newHandle = handle
    } catch let error as RestoreError {
      obstacles.append(error)
    }
    let email = try await old?.client?.session?.email()
    if options.email == nil, email == nil {
      obstacles.append(RestoreError.needsEmail(isNew: options.asNew))
    }
    if server.facts.isInviteRequired, options.inviteCode == nil {
      obstacles.append(RestoreError.needsInvite(server.url))
    }
    if !options.asNew, let obstacle = whyNothingVouches() { obstacles.append(obstacle) }
  }

  /// Whether the account is active on the new server, after an earlier run.
  ///
  /// - Throws: ``RestoreError/livesThere(_:)`` if nothing of it may be replaced.
  func isActive(on target: DestinationServer) async throws -> Bool {
    let status = try await target.call(.checkAccountStatus())
    let isActive = status.isActivated == true
    if let obstacle = whyKept(
      isActive: isActive, isEmpty: status.records == 0, head: status.commit)
    {
      throw obstacle
    }
    return isActive
  }

  /// Why nothing of the account on the new server may be replaced: it was not restored by an earlier
  /// run and may have more than the archive; nil if that is not so.
  private func whyKept(isActive: Bool, isEmpty: Bool, head: CID?) -> RestoreError? {
    let isOurs =
      journal?.has(.repository) == true || head == source.archived.snapshot.commit
    // One that the DID names may be there because its owner has deactivated it, with records of its
    // own; or it was just made.
    let isFree = !isActive && (!isNamed || isEmpty)
    return (isOurs || isFree) && !(isActive && options.isRehearsal)
      ? nil : .livesThere(options.target)
  }

  /// What is wrong where a server calls itself by another name than the one that was given; nil
  /// where its own document says that the one given is right.
  private func whyMisnamed() async throws -> RestoreError? {
    let named = server.facts.did
    guard named.method == "web" else { return nil }
    let host = named.methodSpecificID.prefix { $0 != "%" && $0 != ":" }.lowercased()
    guard let asked = try? HTTPURL(server.url).authority, asked.host.lowercased() != host else {
      return nil
    }
    let url = host == "localhost" ? "http://localhost:\(asked.port)" : "https://\(host)"
    do {
      let document = try await IdentityResolver(network: network).dids.document(of: named).document
      guard let own = document.pds else {
        return .otherServer(url, asked: server.url, why: "its DID document names no server")
      }
      return AccountRestore.isSame(own, server.url)
        ? nil : .otherServer(own, asked: server.url, why: "its DID document says so")
    } catch let error as IdentityError {
      return .otherServer(url, asked: server.url, why: "\(error)")
    }
  }

  /// Checks that the rotation key given may sign what has to be signed.
  private mutating func checkKeys() throws {
    let others = present?.rotationKeys.filter {
      $0 != options.recoveryKey?.verificationKey.didKey
    }
    if options.dropsOldKeys, !isNamed, oldServersKeys.isEmpty, let others, !others.isEmpty {
      obstacles.append(RestoreError.unknownOldKeys(others))
    }
    guard let present, let key = options.recoveryKey?.verificationKey,
      !options.isRehearsal || options.hasScratchDirectory
    else { return }
    do throws(PLCSuccessor.Fault) {
      guard present.place(of: key) != nil else { throw .strangeKey }
      guard present.rotationKeys.count < PLCSuccessor.maximumItems || isNamed else {
        throw .tooMany("rotation keys")
      }
      if !isNamed || vouchesItself {
        try present.history.checkPace(present.time, adding: vouchesItself ? 2 : 1)
      }
    } catch {
      obstacles.append(error)
    }
  }

  /// Whether the DID has to name a key of the owner's own first, which vouches for the account.
  package var vouchesItself: Bool {
    !options.asNew && !there.isThere && !isVouchedForByOld && options.signingKey == nil
  }

  /// Whether the old server vouches for the account, because it is there and there is a login.
  private var isVouchedForByOld: Bool { old?.client != nil }

  /// Why the new server would refuse the account; nil if a key or the old server vouches for it.
  private func whyNothingVouches() -> RestoreError? {
    if isVouchedForByOld { return nil }
    if let key = options.signingKey {
      return document?.signingKey == key.verificationKey ? nil : .strangeKey
    }
    if present != nil, options.recoveryKey == nil {
      return .cannotVouch(isOldThere ? .noLogin : .oldServerGone)
    }
    if options.isRehearsal, !options.hasScratchDirectory { return .cannotVouch(.rehearsal) }
    if let old, isOldThere, !options.abandonsOld {
      return .cannotVouch(.oldServerAnswers(old.url))
    }
    return options.oldPassword == nil || options.abandonsOld
      ? nil : .cannotVouch(.oldServerSilent)
  }

  // MARK: The handle

  /// The lengths that the reference server allows for the part of a handle before its domain.
  private static let labelLengths = 3...18

  private func chooseHandle(_ tell: (String) -> Void) async throws -> Handle {
    if let handle = options.handle ?? journal?.handle { return handle }
    if options.asNew { throw RestoreError.needsHandle(on: nil) }
    guard let handle else { throw RestoreError.needsHandle(on: server.url) }
    if domain(of: handle) != nil { return handle }
    guard try await SourceServer.takesAlong(handle, of: source.did, from: old, network) else {
      return handle
    }
    guard let domain = server.facts.userDomains.first else {
      throw RestoreError.handle(handle.text, "\(server.url) does not offer handles")
    }
    let text = handle.text.prefix { $0 != "." } + domain
    let new: Handle
    do throws(IdentifierError) { new = try Handle(String(text)) } catch {
      throw RestoreError.handle(String(text), "\(error)")
    }
    tell("the handle \(handle) belongs to the old server; the new one will be \(new)")
    return new
  }

  /// The new server's domain that a handle is under; nil if it is under none.
  private func domain(of handle: Handle) -> String? {
    server.facts.userDomains.first(where: handle.text.hasSuffix)
  }

  /// Asks the new server whether the account can have a handle there.
  private func check(_ handle: Handle, _ tell: (String) -> Void) async throws {
    let domain = domain(of: handle)
    if let domain {
      let label = handle.text.dropLast(domain.utf8.count)
      guard Self.labelLengths ~= label.utf8.count, !label.contains(".") else {
        throw RestoreError.handle(
          handle.text, "the part before the domain has to be one word of 3 to 18 characters")
      }
    }
    let holder: DID?
    do {
      holder = try await XRPCClient(service: server.url, network: network).call(
        .resolveHandle(handle))
    } catch let error as XRPCError where error.status == 400 {
      holder = nil
    } catch let error as XRPCError {
      return tell("\(server.url) does not say whether the handle \(handle) is free: \(error)")
    }
    if let holder, options.asNew || holder != source.did {
      throw RestoreError.handle(handle.text, "on \(server.url) it is the handle of \(holder)")
    }
    if holder == nil, domain == nil {
      throw RestoreError.handle(
        handle.text, "\(server.url) does not resolve it to \(source.did)")
    }
  }
}
