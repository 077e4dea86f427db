internal import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// The account on the new server.
extension AccountRestore {
  private static let createAccount = "com.atproto.server.createAccount"

  /// Logs in on the new server if it has the account, and otherwise has it created.
  mutating func account(_ plan: RestorePlan) async throws -> (DestinationServer, Outcome) {
    if plan.there.isThere { return (try await logIn(), ("\(did)", true)) }
    guard let handle = plan.newHandle else { throw RestoreError.needsHandle(on: plan.server.url) }
    let email = try await email()
    report.handle = handle
    var wasDone = false
    do {
      let made =
        if plan.vouchesItself, let unasked = try await createWithoutVoucher(handle, email: email) {
          unasked
        } else {
          try await create(did, handle, email: email, vouchedForBy: plan.server)
        }
      guard made.did == did else {
        throw RestoreError.cannotVouch(.otherAccountMade(made.did))
      }
    } catch let error as XRPCError where error.name == "AlreadyExists" {
      // Either another run has just made it, or the server was stopped while it did.
      let there = try await ServerStanding(of: did, at: plan.server.url, network)
      if case .absent = there { throw RestoreError.halfMade(plan.server.url) }
      wasDone = true
    } catch let error where Self.isUncertain(error) {
      // It may be there anyway.
      let there = try await ServerStanding(of: did, at: plan.server.url, network)
      guard there.isThere else { throw error }
    }
    return (try await logIn(), ("\(handle)", wasDone))
  }

  /// The longest wait, in seconds, until a server creates accounts again.
  private static let longestWait = 3600.0
  /// How long to wait if the server does not say.
  private static let assumedWait = 60.0

  /// Requests the account, and waits if the server creates no more accounts for now; the token that
  /// vouches for it is valid for a minute, and is made anew for each attempt.
  private mutating func create(
    _ did: DID, _ handle: Handle, email: String, vouchedForBy server: RestoreServer
  ) async throws -> NewAccount {
    var waited = 0.0
    while true {
      let token = try await voucher(for: server)
      do {
        return try await create(did, handle, email: email, as: token)
      } catch let error as XRPCError where error.status == 429 && waited < Self.longestWait {
        let wait = max(1, error.wait ?? Self.assumedWait)
        waited += wait
        tell(.waiting(seconds: wait, why: "\(error.host) creates no more accounts until then"))
        try await Task.sleep(for: .seconds(wait))
      }
    }
  }

  /// Requests the account without anything that vouches for it, before the DID is changed for that.
  ///
  /// The reference server looks at the mail address, the invite code and the handle first, and only
  /// then refuses it for want of a token. If many accounts are restored, each request counts
  /// against the server's limit, so this one is not made.
  ///
  /// - Returns: The account, if the server makes it like that; nil if it wants a token.
  /// - Throws: ``RestoreError/accountRefused(_:why:option:)``; `XRPCError` where the account is
  ///   there, or the server is away.
  private mutating func createWithoutVoucher(_ handle: Handle, email: String) async throws
    -> NewAccount?
  {
    guard options.sharedKeyFile == nil else { return nil }
    do {
      return try await create(did, handle, email: email, as: nil)
    } catch let error as XRPCError where error.name != "AlreadyExists" && error.status <= 500 {
      // It wants a token, or says nothing of use.
      return nil
    }
  }

  /// Notes that an account is requested, and requests it: from then on it may exist, whatever comes
  /// back.
  mutating func create(_ did: DID?, _ handle: Handle, email: String, as token: Secret?)
    async throws -> NewAccount
  {
    journal?.handle = handle
    journal?.hasAskedForAccount = true
    try journal?.save()
    do {
      return try await XRPCClient(service: options.target, network: network).call(
        .createAccount(
          did, handle, email: email, options.password, inviteCode: options.inviteCode), as: token)
    } catch let error as XRPCError {
      guard let option = Self.remedy(error) else { throw error }
      throw RestoreError.accountRefused(options.target, why: "\(error)", option: option)
    }
  }

  /// The option that helps if a server refuses to create an account; nil if none does.
  private static func remedy(_ error: XRPCError) -> String? {
    let message = error.message ?? ""
    return switch error.name {
    case "InvalidInviteCode": "--invite"
    case "InvalidHandle", "HandleNotAvailable": "--handle"
    case "InvalidRequest" where message.contains("mail"): "--email"
    case "InvalidRequest" where message.lowercased().contains("handle"): "--handle"
    default: nil
    }
  }

  static func isUncertain(_ error: any Error) -> Bool {
    switch error {
    case let error as XRPCError: error.mayPass && error.status != 429
    case let error as TransportError: error.isTransient
    default: false
    }
  }

  /// A login as the account's owner on the new server, which has the account.
  mutating func logIn() async throws -> DestinationServer {
    let handle = report.handle ?? journal?.handle ?? plan?.handle
    let target = try await DestinationServer.existing(
      of: did, or: handle, options, network, tell: tell)
    report.handle = handle
    return target
  }

  private func logIn(as handle: Handle) async throws -> DestinationServer {
    try await DestinationServer.loggedIn(
      at: options.target, network, as: handle.text, of: nil, (options.password, nil),
      asking: options.asksForCode, tell: tell)
  }

  /// The account's handle.
  func presentHandle() async throws -> Handle? {
    try await document().handle ?? archived.snapshot.handle
  }

  private func email() async throws -> String {
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
    let key: PrivateKey
    if let given = options.signingKey {
      key = given
    } else {
      key = try await nameOwnSigningKey()
    }
    // Others' clocks decide whether it is over, and the own one may be wrong.
    let now =
      did.method == "plc"
      ? try await present().time : UnixTime(options.now()) ?? .init(microseconds: 0)
    return Secret(
      try ServiceToken.make(
        account: did, audience: server.facts.did, method: Self.createAccount,
        now: Int(now.microseconds / 1_000_000), key: key))
  }

  /// Has the DID name a key of the owner's own, which is in a file before anything is sent.
  private mutating func nameOwnSigningKey() async throws -> PrivateKey {
    let key = try OwnSigningKey.kept(in: keyPath, options.passphrase)
    let name = key.verificationKey.didKey
    let outcome: Outcome
    if did.method == "plc" {
      let present = try await present()
      var state = present.state
      state.verificationMethods[PLCState.signingKeyName] = name
      outcome =
        state == present.state
        ? (name, true) : try await change(present, to: state, for: .signingKey)
    } else {
      outcome = try await publish(WebDocument(signingKey: name))
    }
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
  mutating func newAccount(_ plan: RestorePlan) async throws -> (DestinationServer, Outcome) {
    if journal?.hasAskedForAccount == true, let handle = journal?.handle {
      do {
        return try await known(logIn(as: handle), handle, wasDone: true)
      } catch let error as XRPCError where [400, 401].contains(error.status) {
        // It was not made.
      }
    }
    guard let handle = plan.newHandle else { throw RestoreError.needsHandle(on: nil) }
    guard let email = options.email else { throw RestoreError.needsEmail(isNew: true) }
    do {
      _ = try await create(nil, handle, email: email, as: nil)
    } catch let error where Self.isUncertain(error) {
      // Logging in tells whether it was made.
      tell(.warning("\(error)"))
    }
    return try await known(logIn(as: handle), handle, wasDone: false)
  }

  private mutating func known(
    _ target: DestinationServer, _ handle: Handle, wasDone: Bool
  ) -> (DestinationServer, Outcome) {
    journal?.newDID = target.did
    (report.handle, report.newDID) = (handle, target.did)
    return (target, ("\(handle), \(target.did)", wasDone))
  }
}
