package import ATProtocol
internal import Files
package import HTTP
internal import IPLD
package import Snapshots
package import SystemPackage
internal import XRPC

/// Puts the accounts of a server that is gone onto another, for its operator: with the rotation key
/// of the old server, which stands in their DIDs, and the admin password of the new one.
///
/// 1. It keeps no memory of its own: what is done is asked of the new server and the directory, so
///    that an interrupted run is continued by the next.
/// 2. Passwords are random, and forgotten: owners set their own by the new server's reset by mail.
///    That of an active account is never touched.
/// 3. Accounts whose DID has moved elsewhere, or is not in the server's hands, are left alone.
package struct ServerRestore: Sendable {
  /// What came of an account.
  package enum Outcome: Sendable {
    /// It is active on the new server; whether it was before, and how many blobs are missing there.
    case done(wasDone: Bool, missingBlobs: Int)
    /// Only its owner can go on: why.
    case waiting(String)
    /// It lives elsewhere: where.
    case elsewhere(String)
    /// It was not restored: why.
    case failed(any Error)
  }

  private let template: RestoreOptions
  private let admin: Secret
  private let addresses: [DID: String]
  private let network: Network
  private let tell: @Sendable (DID, RestoreEvent) -> Void

  /// How many random bytes a password has.
  private static let passwordLength = 24

  /// A restore of many accounts.
  ///
  /// - Parameters:
  ///   - options: how, for each of them; ``RestoreOptions/recoveryKey`` is the old server's.
  ///   - keyFile: where the signing key is kept with which the accounts are vouched for; nil for a
  ///     plan, which needs none.
  ///   - admin: the admin password of the new server.
  ///   - addresses: the accounts' mail addresses.
  ///   - network: the way to servers.
  ///   - tell: called with what happens to an account.
  /// - Throws: ``BackupError`` if the signing key cannot be kept; `PrivateKey.Fault`.
  package init(
    _ options: RestoreOptions, keeping keyFile: FilePath?, admin: Secret, addresses: [DID: String],
    network: Network, tell: @escaping @Sendable (DID, RestoreEvent) -> Void
  ) throws {
    (self.admin, self.addresses, self.network, self.tell) = (admin, addresses, network, tell)
    var options = options
    options.sharedKeyFile = keyFile
    template = options
    // Before several accounts want it at once.
    if let keyFile { _ = try OwnSigningKey.kept(in: keyFile, options.passphrase) }
  }

  /// Asks what would be done with an account, and changes nothing.
  ///
  /// - Throws: `CancellationError`.
  package func plan(_ archived: ArchivedSnapshot) async throws -> (RestorePlan?, Outcome) {
    do {
      if let outcome = try await whyNot(archived) { return (nil, outcome) }
      var options = template
      options.email = addresses[archived.snapshot.did]
      options.inviteCode = Secret("by the admin")
      let plan = try await RestorePlan(of: archived, options, network: network) { _ in }
      guard let obstacle = plan.obstacles.first else {
        return (plan, .done(wasDone: false, missingBlobs: plan.unrestored.count))
      }
      return (plan, Self.outcome(of: obstacle))
    } catch {
      return (nil, try Self.failed(error))
    }
  }

  /// Restores an account, as far as that goes.
  ///
  /// - Throws: `CancellationError`; ``RestoreQuestion`` if it was not agreed to.
  package func restore(_ archived: ArchivedSnapshot) async throws -> Outcome {
    let did = archived.snapshot.did
    do {
      if let outcome = try await whyNot(archived) { return outcome }
      var options = template
      options.password = Self.randomPassword()
      options.email = addresses[did]
      let client = XRPCClient(service: options.target, network: network)
      if try await ServerStanding(of: did, at: options.target, network).isThere {
        try await client.perform(.updateAccountPassword(of: did, options.password, admin: admin))
      } else if options.email == nil {
        return .waiting("its mail address is not known")
      } else if try await client.call(.describeServer()).isInviteRequired {
        options.inviteCode = try await client.call(.createInviteCode(admin: admin))
      }
      var restore = AccountRestore(archived, in: "", options, network: network) { [tell] in
        tell(did, $0)
      }
      try await restore.run()
      if let question = restore.report.stoppedBefore { throw question }
      return .done(wasDone: false, missingBlobs: restore.report.unrestored.count)
    } catch let question as RestoreQuestion {
      throw question
    } catch {
      return try Self.failed(error)
    }
  }

  /// Why nothing is to be done for an account; nil if something is.
  private func whyNot(_ archived: ArchivedSnapshot) async throws -> Outcome? {
    let did = archived.snapshot.did
    guard did.method == "plc" else {
      return .waiting("its DID document is its owner's to change: carpack restore says how")
    }
    let present = try await PLCUpdate(of: did, network: network, now: template.now)
    let server = present.state.pds ?? ""
    let isNamed = AccountRestore.isSame(server, template.target)
    if isNamed, case .active = try await ServerStanding(of: did, at: template.target, network) {
      return .done(wasDone: true, missingBlobs: 0)
    }
    if !isNamed {
      // A document that cannot be read does not say that the account has stayed.
      let document = try archived.didDocument().flatMap { try? DIDDocument($0.span) }
      guard let before = document?.pds else {
        return .waiting("the archive does not say which server the account was on")
      }
      guard AccountRestore.isSame(server, before) else { return .elsewhere(server) }
    }
    guard let key = template.recoveryKey?.verificationKey, present.place(of: key) != nil else {
      return .waiting("the server's key is not among its rotation keys")
    }
    return nil
  }

  private static func failed(_ error: any Error) throws -> Outcome {
    if error is CancellationError { throw error }
    return outcome(of: error)
  }

  private static func outcome(of error: any Error) -> Outcome {
    switch error {
    case RestoreError.needsEmail: .waiting("its mail address is not known")
    case RestoreError.needsHandle: .waiting("it has no handle")
    default: .failed(error)
    }
  }

  private static func randomPassword() -> Secret {
    var random = SystemRandomNumberGenerator()
    return Secret(Base64.encodeURL((0..<passwordLength).map { _ in random.next() }))
  }
}

/// A signing key that was made to vouch for accounts, in a file for its owner alone.
enum OwnSigningKey {
  /// The key in a file, which is made if there is none.
  ///
  /// - Throws: ``BackupError``; `PrivateKey.Fault`.
  static func kept(in path: FilePath, _ passphrase: Secret?) throws -> PrivateKey {
    let passphrase = passphrase.map { Array($0.text.utf8) }
    if let pem = try AtomicFile.read(path) {
      return try PrivateKey(pem: pem, passphrase: passphrase)
    }
    let key = try PrivateKey.generate(on: .k256)
    let pem = try key.pem(passphrase: passphrase)
    try AtomicFile.save(to: path, replacing: false, isPrivate: true) { try $0(pem.span) }
    return key
  }
}
