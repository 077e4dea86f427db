internal import ATProtocol
internal import Archive
internal import IPLD
internal import XRPC

/// Who an account is and where, as far as a backup has to know.
struct AccountIdentity: Sendable {
  /// The account.
  let did: DID
  /// Its handle: the one that its DID document claims, unless that leads to somebody else.
  ///
  /// Whether it was confirmed both ways, ``warnings`` tell.
  let handle: Handle?
  /// The server to ask.
  let server: String
  /// The key that signs its commits; nil if none is known.
  let key: VerificationKey?
  /// The DID document, as received; nil if it could not be had.
  let document: [UInt8]?
  /// The handles that the newest known DID document claims.
  private let claims: [Handle]
  /// What a person should know.
  private(set) var warnings: [String]

  /// What a snapshot says of the account.
  var facts: AccountFacts {
    var facts = AccountFacts()
    (facts.handle, facts.pds, facts.didDocument) = (handle, server, document)
    return facts
  }

  /// Finds out who an account is.
  ///
  /// Of an account that the archive knows only the DID document is fetched, as long as that bears out what the archive says.
  ///
  /// - Parameters:
  ///   - account: what the account is called.
  ///   - base: the snapshot that the archive has of it.
  ///   - network: the way to whoever is asked.
  ///   - mayBeGone: whether an account that is known no more is taken for what the archive says it was.
  /// - Throws: `IdentityError`, `TransportError`; ``BackupError`` if nothing says where it is.
  init(
    _ account: ATIdentifier, base: ArchivedSnapshot?, network: Network, mayBeGone: Bool = false
  ) async throws {
    let resolver = IdentityResolver(network: network)
    if let base {
      do {
        let found = try await resolver.dids.document(of: base.snapshot.did)
        let claimed = found.document.handle
        if claimed == base.snapshot.handle {
          try self.init(
            did: base.snapshot.did, handle: claimed, document: found.document, bytes: found.bytes,
            warnings: [], network: network)
          return
        }
      } catch let error as IdentityError
        where error.kind == .temporary || (mayBeGone && error.kind == .unavailable)
      {
        // Who keeps the directory of names may be away, while the account's server is not.
        guard let known = try Self(known: base, network: network, because: error) else {
          throw error
        }
        self = known
        return
      }
    }
    let resolved = try await resolver.resolve(account, confirmingHandle: true)
    try self.init(
      did: resolved.did, handle: Self.handle(of: resolved), document: resolved.document,
      bytes: resolved.documentBytes, warnings: resolved.warnings.map { "\($0)" },
      network: network)
  }

  /// Begins a session with the account's server, if one is wanted.
  ///
  /// The owner of a handle's DNS decides where the handle leads. So the password goes to the server
  /// that a handle leads to only if the account's DID document claims that handle. A server that the
  /// user named needs no such claim.
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

  /// What the archive says of an account; nil if it does not say where it was.
  private init?(known base: ArchivedSnapshot, network: Network, because error: IdentityError) throws
  {
    guard let server = network.options.pds ?? base.snapshot.pds else { return nil }
    let bytes = try base.didDocument()
    var key: VerificationKey?
    var claims: [Handle] = []
    if let bytes {
      do throws(DIDDocumentError) {
        let document = try DIDDocument(bytes.span)
        (key, claims) = (document.signingKey, document.handles)
      } catch {
        // It is kept as it was received, and need not have been one that can be used.
      }
    }
    self.init(
      did: base.snapshot.did, handle: base.snapshot.handle, server: server, key: key,
      document: nil, claims: claims,
      warnings: [
        "the DID document could not be had (\(error)); server and key are those of the last backup"
      ])
  }

  /// The server that a DID document names.
  ///
  /// - Throws: ``BackupError`` with the reason, if it names none that may be asked.
  private static func server(of did: DID, _ document: DIDDocument, _ network: Network) throws
    -> String
  {
    switch document.pdsResult {
    case .success(let origin):
      guard try AddressPolicy(network.options).permits(HTTPURL(origin.text), isRedirected: false)
      else {
        throw BackupError.unusableServer(
          did.text,
          "the DID document's server, \"\(origin)\", is not on the public internet")
      }
      return origin.text
    case .failure(.noServer): throw BackupError.noServer(did.text)
    case .failure(let gap): throw BackupError.unusableServer(did.text, "\(gap)")
    }
  }

  private static func handle(of resolved: ResolvedIdentity) -> Handle? {
    let leadsElsewhere = resolved.warnings.contains { warning in
      if case .handleLeadsElsewhere = warning { true } else { false }
    }
    return resolved.handle ?? (leadsElsewhere ? nil : resolved.claimedHandle)
  }

  private init(
    did: DID, handle: Handle?, document: DIDDocument, bytes: [UInt8], warnings: [String],
    network: Network
  ) throws {
    let server = try network.options.pds ?? Self.server(of: did, document, network)
    self.init(
      did: did, handle: handle, server: server, key: document.signingKey, document: bytes,
      claims: document.handles, warnings: warnings)
    if key == nil {
      self.warnings.append(
        "the DID document has no key that can be used, so the commit's signature was not checked")
    }
  }

  private init(
    did: DID, handle: Handle?, server: String, key: VerificationKey?, document: [UInt8]?,
    claims: [Handle], warnings: [String]
  ) {
    self.claims = claims
    self.did = did
    self.handle = handle
    self.server = server
    self.key = key
    self.document = document
    self.warnings = warnings
  }
}
