internal import ATProtocol
internal import Files
internal import HTTP
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// Who an account is and where, as far as a backup needs it.
struct AccountIdentity: Sendable {
  /// The account.
  let did: DID
  /// Its handle: the one that its DID document claims, unless that leads to another account.
  ///
  /// Whether it was confirmed both ways, ``warnings`` tell.
  var handle: Handle?
  /// The server to ask.
  let server: String
  /// The key that signs its commits; nil if none is known.
  let key: VerificationKey?
  /// The DID document, as received; nil if it could not be fetched, or is the one that the archive
  /// has.
  let document: [UInt8]?
  /// The account's log in the PLC directory, as received; nil if it has none, or it was not asked
  /// for yet.
  var log: [UInt8]? = nil
  /// Whether the handle that the account claims leads back to it; nil if that was not, or
  /// could not be, checked.
  var isHandleConfirmed: Bool? = nil
  /// Whether it leads nowhere, rather than to another account.
  private var handleLeadsNowhere = false
  /// The handles that the newest known DID document claims.
  let claims: [Handle]
  /// Warnings for the user.
  var warnings: [String]
}

extension AccountIdentity {
  /// Finds out who an account is.
  ///
  /// For a `did:plc` that the archive knows, only the log is fetched as long as it is unchanged:
  /// the DID document follows from it. For any other known account, the document is fetched. The
  /// handle is asked about if another one is claimed, if it was not confirmed the last time, or
  /// that was more than a week ago.
  ///
  /// - Parameters:
  ///   - account: what the account is called.
  ///   - base: the snapshot that the archive has of it.
  ///   - path: the archive.
  ///   - now: the moment, in RFC 3339 and UTC.
  ///   - network: the way to servers and directories.
  ///   - known: the DID document, if it was fetched a moment ago.
  ///   - trustsKept: whether the document and the log in the archive are trusted, and no directory
  ///     is asked.
  ///   - mayBeGone: whether an account that no longer exists is taken for what the archive says it
  ///     was.
  /// - Throws: `IdentityError`, `TransportError`; ``BackupError`` if nothing says where it is, or
  ///   its log does not hold.
  init(
    _ account: ATIdentifier, base: ArchivedSnapshot?, in path: FilePath? = nil, at now: String,
    network: Network, known: (bytes: [UInt8], document: DIDDocument)? = nil,
    trustsKept: Bool = false, mayBeGone: Bool = false
  ) async throws {
    var resolver = IdentityResolver(network: network)
    resolver.dids.known = known
    guard let base else {
      let found = try await resolver.resolve(account, confirmingHandle: true)
      try self.init(found.did, found.document, bytes: found.documentBytes, network)
      take(found.warnings, isConfirmed: found.handle != nil)
      handle = found.handle ?? handle
      return
    }
    if trustsKept, let document = try DIDDocument(kept: base.readable { try $0.didDocument() }) {
      try self.init(base.snapshot.did, document, bytes: nil, network)
      log = try base.readable { try $0.plcLog() }
      return
    }
    do {
      try await self.init(knownBy: base, resolver, network)
    } catch let error as IdentityError
      where error.kind == .temporary || (mayBeGone && error.kind == .unavailable)
    {
      // DNS or the directory may be down while the account's server is not.
      guard let server = network.options.pds ?? base.snapshot.pds else { throw error }
      let document = try DIDDocument(kept: base.didDocument())
      self.init(
        did: base.snapshot.did, handle: base.snapshot.handle, server: server,
        key: document?.signingKey, document: nil, claims: document?.handles ?? [],
        warnings: [
          "the DID document could not be fetched (\(error)); server and key are those of the last backup"
        ])
      return
    }
    if case .handle(let asked) = account, !claims.contains(asked) {
      warnings.append(
        "the account of this archive, \(did), no longer claims the handle \(asked); the backup continues with this account; to back up the handle's new owner, use its DID"
      )
    }
    guard
      handle != base.snapshot.handle || base.snapshot.standing.doubts.contains(.handle)
        || !base.snapshot.hasFreshIdentity(at: Moment(now), in: path)
    else { return }
    // Whether the handle that the account claims leads back to it.
    guard let claimed = claims.first else {
      isHandleConfirmed = true
      return
    }
    let (source, found) = try await resolver.confirm(claimed, of: did)
    take(found, isConfirmed: source != nil)
  }

  /// The identity of an account that has an archive: by its log, if that says what it said before,
  /// and otherwise by its document.
  private init(knownBy base: ArchivedSnapshot, _ resolver: IdentityResolver, _ network: Network)
    async throws
  {
    let did = base.snapshot.did
    var log: [UInt8]? = nil
    if did.method == "plc", let known = try base.readable({ try $0.plcLog() }) {
      do {
        log = try await resolver.dids.plcLog(of: did)
      } catch IdentityError.didNotFound {
        // The directory keeps none of it.
      }
      if let log, try Self.isSame(log, known, of: did),
        let document = try DIDDocument(kept: base.readable { try $0.didDocument() }),
        try PLCLog(known.span, of: did).entries.last.map(document.follows(from:)) ?? false
      {
        try self.init(did, document, bytes: nil, network)
        self.log = known
        return
      }
    }
    let found = try await resolver.dids.document(of: did)
    try self.init(did, found.document, bytes: found.bytes, network)
    self.log = log
  }

  /// What a DID document says of an account.
  ///
  /// - Throws: ``BackupError`` with the reason, if it names no server that may be asked.
  private init(_ did: DID, _ document: DIDDocument, bytes: [UInt8]?, _ network: Network) throws {
    let server: String
    switch (network.options.pds, document.pdsResult) {
    case (let named?, _): server = named
    case (nil, .success(let origin)):
      guard try AddressPolicy(network.options).permits(HTTPURL(origin.text), isRedirected: false)
      else {
        throw BackupError.unusableServer(
          did.text, "the DID document's server, \"\(origin)\", is not on the public internet")
      }
      server = origin.text
    case (nil, .failure(.noServer)): throw BackupError.noServer(did.text)
    case (nil, .failure(let gap)): throw BackupError.unusableServer(did.text, "\(gap)")
    }
    self.init(
      did: did, handle: document.handle, server: server, key: document.signingKey,
      document: bytes, claims: document.handles, warnings: [])
    if case .success(let home) = document.pdsResult, network.options.pds != nil,
      try !HTTPURL(home.text).hasSameOrigin(as: HTTPURL(server))
    {
      warnings.append(
        "the account's server is \(home) by its DID document; \(server) may have an older state")
    }
  }

  /// Whether a log says what the known log says.
  ///
  /// - Throws: ``BackupError/notGenuine(_:)`` if a log that says something else is not valid, or
  ///   has lost operations that were in the known log.
  private static func isSame(_ log: [UInt8], _ known: [UInt8], of did: DID) throws -> Bool {
    if log == known { return true }
    do {
      let new = try PLCLog(log.span, of: did)
      let old = try PLCLog(known.span, of: did)
      if new == old { return true }
      _ = try PLCHistory(validating: new, of: did)
      let operations = Set(new.entries.compactMap(\.cid))
      if let lost = old.entries.compactMap(\.cid).first(where: { !operations.contains($0) }) {
        throw BackupError.notGenuine(
          "the PLC log of \(did) has lost the operation \(lost), which the archive has: there are two histories"
        )
      }
      return false
    } catch let error where error is PLCLogError || error is PLCFault {
      throw BackupError.notGenuine("the PLC log of \(did) is not valid: \(error)")
    }
  }

  /// Records what was found out about the handle that the account claims.
  private mutating func take(_ found: [IdentityWarning], isConfirmed: Bool) {
    warnings += found.map { "\($0)" }
    if found.contains(where: \.isContradiction) {
      isHandleConfirmed = false
    } else if isConfirmed || claims.isEmpty {
      isHandleConfirmed = true
    }
    handleLeadsNowhere = found.contains { if case .handleNotConfirmed = $0 { true } else { false } }
    if found.contains(where: { if case .handleLeadsElsewhere = $0 { true } else { false } }) {
      handle = nil
    }
  }

  /// Takes into account that the account is not active: its server does not resolve its handle then,
  /// which speaks against nothing.
  mutating func excuseInactive() {
    if isHandleConfirmed == false, handleLeadsNowhere { isHandleConfirmed = nil }
  }

  /// Begins a session with the account's server, if one is wanted.
  ///
  /// The owner of a handle's DNS decides where the handle leads. So the password goes to the server
  /// that a handle leads to only if the account's DID document claims that handle. A server that
  /// the user named needs no such claim.
  ///
  /// - Parameters:
  ///   - begin: what begins it; nil if none is wanted.
  ///   - account: what the account was called.
  ///   - network: the way to the server.
  /// - Throws: ``BackupError/unclaimedHandle(_:_:)``; what `begin` throws.
  func session(
    _ begin: (@Sendable (DID, _ server: String, Network) async throws -> Session)?,
    for account: ATIdentifier, network: Network
  ) async throws -> Session? {
    guard let begin else { return nil }
    if case .handle(let handle) = account, network.options.pds == nil, !claims.contains(handle) {
      throw BackupError.unclaimedHandle(handle.text, did.text)
    }
    return try await begin(did, server, network)
  }
}

extension DIDDocument {
  /// The document that an archive keeps as it was received; nil if there is none that can be read.
  init?(kept bytes: [UInt8]?) {
    guard let bytes else { return nil }
    do throws(DIDDocumentError) { try self.init(bytes.span) } catch { return nil }
  }

  /// Whether the document says what an operation of the PLC log says of handle, server and key.
  fileprivate func follows(from operation: PLCLog.Entry) -> Bool {
    !operation.isTombstone && handle == operation.handle && pds == operation.pds?.text
      && signingKey == operation.signingKey
  }
}
