internal import ATProtocol
internal import Files
internal import IPLD
internal import XRPC

/// What cannot be undone: the identity, the activation, the end on the old server.
extension AccountRestore {
  /// Makes the DID name the new server.
  mutating func moveIdentity(_ target: DestinationServer) async throws -> Outcome {
    let credentials = try await target.call(.getRecommendedDIDCredentials())
    guard Self.isSame(credentials.pds.endpoint, options.target) else {
      throw RestoreError.otherServer(
        credentials.pds.endpoint, asked: options.target, why: "it recommends that name for the DID")
    }
    guard did.method == "plc" else {
      return try await publish(
        WebDocument(
          signingKey: credentials.signingKey, pds: credentials.pds, name: credentials.handle))
    }
    let present = try await present()
    let state = present.state
    let owners = owners(in: state)
    // A key of both servers stays.
    let dropped =
      options.dropsOldKeys
      ? oldServersKeys.subtracting(credentials.rotationKeys).subtracting(owners) : []
    if state.pds == credentials.pds.endpoint, state.signingKey == credentials.signingKey,
      credentials.rotationKeys.allSatisfy(state.rotationKeys.contains),
      dropped.isDisjoint(with: state.rotationKeys)
    {
      return ((present.log.entries.last?.cid).map { "\($0)" } ?? "", true)
    }
    // The name that the account loses, if it gets another.
    let name = try await presentHandle().map { "at://" + $0.text }
    var wanted = state.moved(
      to: credentials, owners: owners, givingUp: name == credentials.handle ? nil : name)
    wanted.rotationKeys.removeAll(where: dropped.contains)
    return try await change(present, to: wanted, for: .identity, through: target.client)
  }

  /// The rotation keys that are shown to be the old server's.
  private var oldServersKeys: Set<String> { Set(plan?.oldServersKeys.map(\.key) ?? []) }

  /// The rotation keys that are the owner's: those that the old server does not claim for itself,
  /// or, where it cannot be asked, the one given and all above it; none that is shown to be the old
  /// server's.
  private func owners(in state: PLCState) -> Set<String> {
    let keys = state.rotationKeys
    if old?.client != nil { return Set(keys).subtracting(oldServersKeys) }
    guard let key = options.recoveryKey?.verificationKey.didKey,
      let place = keys.firstIndex(of: key)
    else { return [] }
    return Set(keys[...place]).subtracting(oldServersKeys).union([key])
  }

  /// Changes the account by one operation, which is shown, asked about, and sent once: the one that
  /// was signed in an earlier run if it says what is wanted and follows the log still, else
  /// another.
  ///
  /// - Parameter server: the server that hands it to the directory; nil to do that here.
  /// - Throws: ``RestoreQuestion/identity`` if it is not agreed to.
  mutating func change(
    _ present: PLCUpdate, to state: PLCState, for step: RestoreStep,
    through server: XRPCClient? = nil
  ) async throws -> Outcome {
    let operation: PLCSuccessor
    if let kept = kept(for: step, saying: state, after: present) {
      operation = kept
    } else {
      operation = try await signed(state, after: present)
    }
    tell(.operation(operation, from: present.state, to: state))
    try journal?.keep(operation.operation, for: step)
    if let dryRun = options.dryRun {
      try dryRun(operation)
      throw DryRunEnd()
    }
    try ask(.identity)
    try await present.send(operation, through: server)
    return ("\(operation.cid)", false)
  }

  private func kept(
    for step: RestoreStep, saying state: PLCState, after present: PLCUpdate
  ) -> PLCSuccessor? {
    guard let kept = journal?.operation(for: step) else { return nil }
    do { return try present.check(kept, says: state) } catch {
      // Another one is signed in its place.
      return nil
    }
  }

  /// An operation signed with the owner's key, or by the old server.
  private func signed(_ state: PLCState, after present: PLCUpdate) async throws -> PLCSuccessor {
    if let key = options.recoveryKey { return try present.sign(state, with: key) }
    guard let client = old?.client else {
      throw RestoreError.needsSigner
    }
    return try await present.sign(
      state, by: client, mailCode: options.mailCode, asking: options.asksForCode)
  }

  // MARK: Activation

  /// Activates the account on the new server.
  func activate(_ target: DestinationServer) async throws -> Outcome {
    let status = try await target.call(.checkAccountStatus())
    let isActive = status.isActivated == true
    if !isActive {
      guard status.isDIDValid != false else {
        throw RestoreError.notActivated(
          "the new server does not accept the DID document")
      }
      try ask(.activation)
      try await target.perform(.activateAccount())
      guard try await target.call(.checkAccountStatus()).isActivated != false else {
        throw RestoreError.notActivated("the new server says that the account is not active")
      }
    }
    return ("active", isActive)
  }

  /// Deactivates the account on the old server, if that is wanted and possible.
  func deactivateOld() async throws -> Outcome? {
    // The DID does not name the key that vouched any more.
    if options.sharedKeyFile == nil { try AtomicFile.remove(keyPath) }
    guard options.deactivatesOld else { return nil }
    guard let client = old?.client else {
      tell(.warning("the old server is not asked to deactivate the account: you are not logged in"))
      return nil
    }
    try ask(.deactivation)
    if let time = options.deleteOldAfter { try ask(.deletion(after: time)) }
    try await client.perform(.deactivateAccount(deleteAfter: options.deleteOldAfter))
    if let old, case .active = try await ServerStanding(of: did, at: old.url, network) {
      tell(.warning("\(old.url) still serves the account, although it was asked to deactivate it"))
      return nil
    }
    return (options.deleteOldAfter.map { "to be deleted after \($0)" } ?? "", false)
  }
}
