internal import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// The account on the new server.
extension AccountRestore {
  private static let createAccount = "com.atproto.server.createAccount"

  /// Logs in on the new server, where there is an account if it was asked for before, and else has
  /// one made.
  mutating func account(_ server: RestoreServer) async throws -> (DestinationServer, Outcome) {
    if journal.hasAskedForAccount || hasMoved, let target = try await logIn(mayBeAbsent: true) {
      return (target, ("\(did)", true))
    }
    guard !hasMoved else { throw RestoreError.livesThere(options.target) }
    let handle = try await chooseHandle(server)
    let email = try await chooseEmail()
    try checkInvite(server)
    (journal.handle, report.handle) = (handle, handle)
    let token = try await voucher(for: server)
    var failure: (any Error)?
    var wasDone = false
    do {
      let made = try await create(did, handle, email: email, as: token)
      guard made.did == did else {
        throw RestoreError.cannotVouch(.otherAccountMade(made.did))
      }
    } catch let error as XRPCError
      where error.name == "AlreadyExists"
    {
      tell(.warning("\(server.url) has an account of this DID already"))
      (failure, wasDone) = (RestoreError.otherPassword(server.url), true)
    } catch let error where Self.isUncertain(error) {
      failure = error
    }
    guard let target = try await logIn(mayBeAbsent: failure != nil) else {
      throw failure
        ?? RestoreError.cannotVouch(.accountUnknown)
    }
    return (target, ("\(handle)", wasDone))
  }

  func checkInvite(_ server: RestoreServer) throws {
    if server.facts.isInviteRequired, options.inviteCode == nil {
      throw RestoreError.needsInvite(server.url)
    }
  }

  /// Requests an account, once that is noted: from then on it may be there, whatever comes back.
  mutating func create(_ did: DID?, _ handle: Handle, email: String, as token: Secret?)
    async throws -> NewAccount
  {
    journal.handle = handle
    journal.hasAskedForAccount = true
    try journal.save()
    return try await XRPCClient(service: options.target, network: network).call(
      .createAccount(
        did, handle, email: email, options.password, inviteCode: options.inviteCode), as: token)
  }

  static func isUncertain(_ error: any Error) -> Bool {
    switch error {
    case let error as XRPCError: error.isTransient && error.status != 429
    case let error as TransportError: error.isTransient
    default: false
    }
  }

  /// As the account's owner on the new server; nil if there is no such account, and need not be.
  mutating func logIn(mayBeAbsent: Bool) async throws -> DestinationServer? {
    do {
      let target = try await logIn(as: did.text)
      report.handle = report.handle ?? journal.handle
      return DestinationServer(client: target.client, did: did, tell: tell)
    } catch let error as XRPCError where mayBeAbsent && [400, 401].contains(error.status) {
      // The same answer as for a wrong password: making the account tells them apart.
      return nil
    }
  }

  func logIn(as identifier: String) async throws -> DestinationServer {
    try await DestinationServer.loggedIn(
      at: options.target, network, as: identifier, (options.password, nil),
      asking: options.asksForCode, tell: tell)
  }

  // MARK: Names

  private func chooseHandle(_ server: RestoreServer) async throws -> Handle {
    if let handle = options.handle ?? journal.handle { return handle }
    guard let present = try await presentHandle() else {
      throw RestoreError.needsHandle(on: server.url)
    }
    if server.facts.userDomains.contains(where: present.text.hasSuffix) { return present }
    guard try await SourceServer.takesAlong(present, of: did, from: old, network) else {
      return present
    }
    guard let domain = server.facts.userDomains.first else {
      throw RestoreError.handle(present.text, "\(server.url) gives out no handles")
    }
    let label = present.text.prefix { $0 != "." }
    let text = "\(label)\(domain)"
    guard 3...18 ~= label.utf8.count else {
      throw RestoreError.handle(text, "the part before the domain has to have 3 to 18 characters")
    }
    let handle: Handle
    do throws(IdentifierError) { handle = try Handle(text) } catch {
      throw RestoreError.handle(text, "\(error)")
    }
    tell(.warning("the handle \(present) belongs to the old server; the new one will be \(handle)"))
    return handle
  }

  /// The handle that the account goes by.
  func presentHandle() async throws -> Handle? {
    try await document().handle ?? archived.snapshot.handle
  }

  private func chooseEmail() async throws -> String {
    if let email = options.email { return email }
    if let session = old?.client?.session, let email = try await session.email() { return email }
    throw RestoreError.needsEmail(isNew: false)
  }

  // MARK: Vouching

  /// A token that vouches for the account.
  private mutating func voucher(for server: RestoreServer) async throws -> Secret {
    if let client = old?.client {
      return try await client.call(
        .getServiceAuth(for: server.facts.did, method: Self.createAccount))
    }
    let key = try await ownSigningKey()
    let now = Int((UnixTime(options.now())?.microseconds ?? 0) / 1_000_000)
    return Secret(
      try ServiceToken.make(
        account: did, audience: server.facts.did, method: Self.createAccount, now: now, key: key))
  }

  /// The key that the DID names, in the owner's hands: the one given, or one that the DID is made
  /// to name.
  private mutating func ownSigningKey() async throws -> PrivateKey {
    let document = try await document()
    if let key = options.signingKey {
      guard document.signingKey == key.verificationKey else {
        throw RestoreError.strangeKey
      }
      return key
    }
    guard did.method == "plc" else {
      throw RestoreError.cannotVouch(.noKeyInDocument)
    }
    let isOldThere = old?.standing.isThere == true
    guard options.recoveryKey != nil else {
      throw RestoreError.cannotVouch(isOldThere ? .noLogin : .oldServerGone)
    }
    guard !options.isRehearsal else { throw RestoreError.cannotVouch(.rehearsal) }
    if let old, isOldThere, !options.abandonsOld {
      throw RestoreError.cannotVouch(.oldServerAnswers(old.url))
    }
    guard options.oldPassword == nil || options.abandonsOld else {
      throw RestoreError.cannotVouch(.oldServerSilent)
    }
    return try await nameOwnSigningKey()
  }

  /// Has the DID name a key of the owner's own, which is in a file before anything is sent.
  private mutating func nameOwnSigningKey() async throws -> PrivateKey {
    let path = Self.keyPath(of: archive)
    let passphrase = options.passphrase.map { Array($0.text.utf8) }
    let key: PrivateKey
    if let pem = try AtomicFile.read(path) {
      key = try PrivateKey(pem: pem, passphrase: passphrase)
    } else {
      key = try PrivateKey.generate(on: .k256)
      let pem = try key.pem(passphrase: passphrase)
      try AtomicFile.save(to: path, replacing: false, isPrivate: true) { try $0(pem.span) }
    }
    let present = try await present()
    var state = present.state
    state.verificationMethods[PLCState.signingKeyName] = key.verificationKey.didKey
    let outcome =
      state == present.state
      ? (key.verificationKey.didKey, true)
      : try await change(present, to: state, for: .signingKey)
    try finish(.signingKey, outcome)
    return key
  }
}

/// An account with a DID of its own, made of an archive: what is left where the old server is gone
/// and there is no rotation key.
///
/// It has no followers, and what others wrote in answer still names the old account.
extension AccountRestore {
  /// Makes the account, or continues with it.
  mutating func newAccount(_ server: RestoreServer) async throws -> (DestinationServer, Outcome) {
    if journal.hasAskedForAccount, let handle = journal.handle {
      do {
        return try await known(logIn(as: handle.text), handle, wasDone: true)
      } catch let error as XRPCError where [400, 401].contains(error.status) {
        // It was not made.
      }
    }
    guard let handle = options.handle ?? journal.handle else {
      throw RestoreError.needsHandle(on: nil)
    }
    guard let email = options.email else { throw RestoreError.needsEmail(isNew: true) }
    try checkInvite(server)
    do {
      _ = try await create(nil, handle, email: email, as: nil)
    } catch let error where Self.isUncertain(error) {
      // Logging in tells whether it was made.
      tell(.warning("\(error)"))
    }
    return try await known(logIn(as: handle.text), handle, wasDone: false)
  }

  private mutating func known(
    _ target: DestinationServer, _ handle: Handle, wasDone: Bool
  ) -> (DestinationServer, Outcome) {
    journal.newDID = target.did
    (report.handle, report.newDID) = (handle, target.did)
    return (target, ("\(handle), \(target.did)", wasDone))
  }
}
