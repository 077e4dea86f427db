internal import ATProtocol
internal import Files
internal import IPLD
internal import XRPC

/// What cannot be undone: the identity, the activation, the end on the old server.
extension AccountRestore {
  /// The longest pause between two looks at the document of a `did:web`, in seconds.
  private static let longestPause = 20.0

  /// Has the DID name the new server; returns whether it does.
  mutating func moveIdentity(_ target: DestinationServer) async throws -> Bool {
    let credentials = try await target.call(GetRecommendedDIDCredentials())
    guard Self.isSame(credentials.pds.endpoint, options.target) else {
      throw RestoreError.otherServer(credentials.pds.endpoint, asked: options.target)
    }
    guard did.method == "plc" else {
      try await waitForDocument(credentials)
      try finish(.identity, "the document of \(did)")
      return true
    }
    let present = try await present()
    let state = present.state
    if state.pds == credentials.pds.endpoint, state.signingKey == credentials.signingKey,
      credentials.rotationKeys.allSatisfy(state.rotationKeys.contains)
    {
      try finish(.identity, present.log.entries.last?.cid.map { "\($0)" } ?? "", wasDone: true)
      return true
    }
    // The name that the account loses, if it gets another.
    let name = try await presentHandle().map { "at://" + $0.text }
    let wanted = try await state.moved(
      to: credentials, owners: owners(in: state), givingUp: name == credentials.handle ? nil : name)
    let operation = try await signed(wanted, after: present)
    let isSent = try await send(
      operation, saying: wanted, after: present, for: .identity, through: target.client)
    guard isSent else { return false }
    try finish(.identity, "\(operation.cid)")
    return true
  }

  /// The rotation keys that are the owner's: those that the old server does not claim for itself,
  /// or, where it cannot be asked, the one given and all above it.
  private func owners(in state: PLCState) async throws -> Set<String> {
    let keys = state.rotationKeys
    if let client = old?.client {
      let servers = try await client.call(GetRecommendedDIDCredentials()).rotationKeys
      return Set(keys).subtracting(servers)
    }
    guard let key = options.recoveryKey?.verificationKey.didKey,
      let place = keys.firstIndex(of: key)
    else { return [] }
    return Set(keys[...place])
  }

  /// The operation, signed: as it was signed before, if it follows the log still; with the owner's
  /// key; or by the old server.
  private func signed(_ state: PLCState, after present: PLCUpdate) async throws -> PLCSuccessor {
    if let kept = kept(for: .identity, saying: state, after: present) { return kept }
    if let key = options.recoveryKey { return try present.sign(state, with: key) }
    guard let client = old?.client else {
      throw RestoreError.needs(
        "a login of the old server, or a rotation key of your own",
        option: "--login or --recovery-key")
    }
    return try await present.sign(
      state, by: client, mailCode: options.mailCode, asking: options.asksForCode)
  }

  /// An operation that was signed in an earlier run, if it says what is wanted and follows the log
  /// still.
  func kept(
    for purpose: RestoreStep, saying state: PLCState, after present: PLCUpdate
  ) -> PLCSuccessor? {
    guard let kept = journal.operation(for: purpose) else { return nil }
    do { return try present.check(kept, says: state) } catch {
      // Another one is signed in its place.
      return nil
    }
  }

  /// Shows an operation, asks, and sends it once; returns whether it was sent.
  ///
  /// - Parameter server: the server that hands it to the directory; nil to do that here.
  mutating func send(
    _ operation: PLCSuccessor, saying state: PLCState, after present: PLCUpdate,
    for purpose: RestoreStep, through server: XRPCClient? = nil
  ) async throws -> Bool {
    let changes = present.state.changes(to: state)
    tell(.operation(JSON: operation.operation.json(pretty: true), changes: changes))
    try journal.keep(operation.operation, for: purpose)
    if let dryRun = options.dryRun {
      try dryRun(operation)
      report.stoppedBefore = .identity
    }
    guard options.dryRun == nil, agrees(.identity) else { return false }
    try await present.send(operation, through: server)
    return true
  }

  /// Says what the document of a `did:web` has to say, and waits until it does.
  private func waitForDocument(_ credentials: PLCCredentials) async throws {
    let resolver = IdentityResolver(network: network).dids
    let url = try resolver.documentURL(of: did)
    var isTold = false
    var pause = 1.0
    while true {
      do {
        let document = try await resolver.document(of: did).document
        let key = document.signingKey?.didKey
        if key == credentials.signingKey, let pds = document.pds,
          Self.isSame(pds, credentials.pds.endpoint)
        {
          return
        }
      } catch let error as IdentityError {
        tell(.warning("\(error)"))
      }
      if !isTold {
        tell(.document(JSON: Self.document(of: did, credentials).json(pretty: true), url: url))
        guard options.agrees(.identity) else {
          throw RestoreError.notActivated("the document at \(url) does not name the new server")
        }
        isTold = true
      }
      try await Task.sleep(for: .seconds(pause))
      pause = min(2 * pause, Self.longestPause)
    }
  }

  private static func document(of did: DID, _ credentials: PLCCredentials) -> IPLDValue {
    let multikey = String(credentials.signingKey.dropFirst("did:key:".count))
    let method: IPLDMap = [
      "id": .string("\(did)#atproto"), "type": .string("Multikey"),
      "controller": .string(did.text), "publicKeyMultibase": .string(multikey),
    ]
    let service: IPLDMap = [
      "id": .string("#atproto_pds"), "type": .string(credentials.pds.type),
      "serviceEndpoint": .string(credentials.pds.endpoint),
    ]
    var document: IPLDMap = [
      "@context": .array([
        .string("https://www.w3.org/ns/did/v1"), .string("https://w3id.org/security/multikey/v1"),
      ]),
      "id": .string(did.text), "verificationMethod": .array([.map(method)]),
      "service": .array([.map(service)]),
    ]
    if let handle = credentials.handle { document["alsoKnownAs"] = .array([.string(handle)]) }
    return .map(document)
  }

  // MARK: Activation

  /// Has the new server speak for the account; returns whether it does.
  mutating func activate(_ target: DestinationServer) async throws -> Bool {
    let status = try await target.call(CheckAccountStatus())
    if status.isActivated == true {
      try finish(.activation, "active", wasDone: true)
      try removeKey()
      return true
    }
    guard status.isDIDValid != false else {
      throw RestoreError.notActivated("the new server does not find the DID's document in order")
    }
    guard agrees(.activation) else { return false }
    try await target.perform(ActivateAccount())
    let after = try await target.call(CheckAccountStatus())
    guard after.isActivated != false else {
      throw RestoreError.notActivated("the new server says that the account is not active")
    }
    try finish(.activation, "active")
    try removeKey()
    return true
  }

  /// Removes the key that vouched: the DID does not name it any more.
  private func removeKey() throws { try AtomicFile.remove(Self.keyPath(of: archive)) }

  /// Has the old server speak for the account no more, if that is wanted and possible.
  mutating func deactivateOld() async throws {
    guard options.deactivatesOld else { return }
    guard let client = old?.client else {
      tell(.warning("the old server is not asked to deactivate the account: there is no login"))
      return
    }
    guard agrees(.deactivation) else { return }
    if let time = options.deleteOldAfter, !agrees(.deletion(after: time)) { return }
    try await client.perform(DeactivateAccount(deleteAfter: options.deleteOldAfter))
    if let old, case .active = try await SourceServer.standing(of: did, at: old.url, network) {
      tell(.warning("\(old.url) goes on showing the account, though it was told not to"))
      return
    }
    try finish(.deactivation, options.deleteOldAfter.map { "to be deleted after \($0)" } ?? "")
  }
}
