package import ATProtocol
internal import Files
package import HTTP
internal import IPLD
package import Snapshots
package import SystemPackage
internal import XRPC

/// Restores the accounts of a server that is gone to another server, for its operator: with the
/// rotation key of the old server, which stands in their DIDs, and the admin password of the new
/// one.
///
/// 1. It keeps no memory of its own: the new server and the directory are asked what is done, so
///    that an interrupted run is continued by the next.
/// 2. Passwords are random and are not kept: owners set their own by the new server's reset by
///    mail. That of an active account is never touched.
/// 3. Accounts whose DID names another server than the one that is gone, or is not under the server's
///    key, are left alone, whatever their archives and the other server say. The server that is gone
///    is the one that the archived repository came from.
/// 4. A rehearsal takes the same steps up to the comparison, with a directory of its own, which is
///    given the accounts' histories from the archives.
package struct ServerRestore: Sendable {
  /// The result for an account.
  package enum Outcome: Sendable {
    /// It is active on the new server, or, in a rehearsal, came back equal; whether it was active
    /// before, and what is missing there.
    case done(wasDone: Bool, lacking: [String])
    /// Of a plan: it would be restored; what would be missing there.
    case planned(lacking: [String])
    /// Only its owner can continue: why.
    case waiting(String)
    /// It is on another server: which.
    case elsewhere(String)
    /// It was not restored: why.
    case failed(any Error)
  }

  private var template: RestoreOptions
  private let admin: Secret
  private let addresses: [DID: String]
  private let network: Network
  private let tell: @Sendable (DID, RestoreEvent) -> Void

  /// What an account lacks if its commit was signed on the server that is gone.
  private static let signature =
    "a commit signed with its own key: the server signs at the account's next write"
  private static let formerSignature =
    "its commit is signed with the lost server's key until the owner's next write; relays and app views may refuse it until then, and --yes sign has the new server sign"
  /// How many random bytes a password has.
  private static let passwordLength = 24

  /// A restore of many accounts.
  ///
  /// - Parameters:
  ///   - options: how, for each of them; ``RestoreOptions/recoveryKey`` is the old server's. The
  ///     directory of a rehearsal is one of its own.
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
    template = options
    template.sharedKeyFile = keyFile
    template.hasScratchDirectory = options.isRehearsal
    // Before several accounts want it at once.
    if let keyFile { _ = try OwnSigningKey.kept(in: keyFile, options.passphrase) }
  }

  /// Asks what would be done with an account, and changes nothing.
  ///
  /// - Throws: `CancellationError`.
  package func plan(_ archived: ArchivedSnapshot) async throws -> (RestorePlan?, Outcome) {
    do {
      if let outcome = try await whyNot(archived) { return (nil, outcome) }
      var options = options(for: archived.snapshot.did)
      options.inviteCode = Secret("by the admin")
      let plan = try await RestorePlan(of: archived, in: nil, options, network: network) { _ in }
      guard let obstacle = plan.obstacles.first else {
        if plan.present == nil, !plan.isNamed {
          return (
            plan,
            .waiting(
              "its DID document has to be published twice: with a key that vouches, and with the new server"
            )
          )
        }
        return (plan, .planned(lacking: Self.lacking(plan.unrestored)))
      }
      return (plan, Self.outcome(of: obstacle))
    } catch {
      return (nil, try Self.failed(error))
    }
  }

  /// Restores an account, as far as possible.
  ///
  /// - Throws: `CancellationError`; ``RestoreQuestion`` if it was not agreed to.
  package func restore(_ archived: ArchivedSnapshot) async throws -> Outcome {
    let did = archived.snapshot.did
    do {
      if template.isRehearsal, did.method == "plc" { try await copyHistory(of: archived) }
      if let outcome = try await whyNot(archived) { return outcome }
      var options = options(for: did)
      options.password = Self.randomPassword()
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
      let report = restore.report
      if report.hasFormerSignature { tell(did, .warning(Self.formerSignature)) }
      var lacking = Self.lacking(report.unrestored)
      if !report.hasAllPreferences { lacking.append("preferences, which it did not accept") }
      if report.brokenList != nil { lacking.append("a complete list of its missing blobs") }
      switch report.stoppedBefore {
      case nil: break
      case .signing: lacking.append(Self.signature)
      case let question?: throw question
      }
      return .done(wasDone: false, lacking: lacking)
    } catch let question as RestoreQuestion {
      throw question
    } catch {
      return try Self.failed(error)
    }
  }

  private func options(for did: DID) -> RestoreOptions {
    var options = template
    options.email = addresses[did]
    guard did.method != "plc" else { return options }
    // Its document is published by someone else, and not waited for.
    options.recoveryKey = nil
    options.agrees = { [agrees = template.agrees] question in
      if case .identity = question { false } else { agrees(question) }
    }
    return options
  }

  private static func lacking(_ unrestored: UnrestoredBlobs) -> [String] {
    let missing = unrestored.count - unrestored.acceptedCount
    return missing > 0 ? ["\(missing) blobs"] : []
  }

  /// Gives the directory of a rehearsal the account's history.
  private func copyHistory(of archived: ArchivedSnapshot) async throws {
    guard let bytes = try archived.plcLog() else { return }
    let did = archived.snapshot.did
    try await PLCDirectory(network: network).copy(PLCLog(bytes.span, of: did), of: did)
  }

  /// Why nothing is to be done for an account; nil if something is.
  private func whyNot(_ archived: ArchivedSnapshot) async throws -> Outcome? {
    let did = archived.snapshot.did
    let present: PLCUpdate?
    let server: String?
    if did.method == "plc" {
      present = try await PLCUpdate(of: did, network: network, now: template.now)
      server = present?.state.pds ?? ""
    } else {
      present = nil
      server = try await publishedServer(of: did)
    }
    let isNamed = server.map { AccountRestore.isSame($0, template.target) } ?? false
    if isNamed, !template.isRehearsal,
      case .active(_, let head) = try await ServerStanding(of: did, at: template.target, network)
    {
      // The document of a did:web has one key, and no history that names those before.
      let isUnsigned = present == nil && head == archived.snapshot.commit
      return .done(wasDone: true, lacking: isUnsigned ? [Self.signature] : [])
    }
    if let server, !isNamed, let outcome = hasLeft(archived.snapshot, for: server, present) {
      return outcome
    }
    guard let present else {
      return template.isRehearsal ? .waiting("its DID document would have to be changed") : nil
    }
    guard let key = template.recoveryKey?.verificationKey, present.place(of: key) != nil else {
      return .waiting("the server's key is not among its rotation keys")
    }
    return nil
  }

  /// Whether an account has left the server that is gone, or may have; nil if its DID still names
  /// that.
  ///
  /// What the archive has of its DID may be younger than the move: a server goes on giving out the
  /// repository of who has left.
  private func hasLeft(
    _ snapshot: Snapshot, for server: String, _ present: PLCUpdate?
  ) -> Outcome? {
    guard let gone = template.oldServer ?? snapshot.pds else {
      return .waiting("the archive does not say which server the account was on")
    }
    if AccountRestore.isSame(server, gone) { return nil }
    if template.oldServer == nil, let log = present?.log,
      !log.servers.contains(where: { AccountRestore.isSame($0.text, gone) })
    {
      return .waiting(
        "it was backed up from \(gone), which its DID has never named; --old-server names the server that is gone"
      )
    }
    return .elsewhere(server)
  }

  /// The server that the document of a `did:web` names; nil if it is away, as a document is that
  /// was on the server that is gone.
  private func publishedServer(of did: DID) async throws -> String? {
    do {
      return try await IdentityResolver(network: network).dids.document(of: did).document.pds ?? ""
    } catch let error as IdentityError
      where error.kind == .unavailable || error.kind == .temporary
    {
      return nil
    }
  }

  private static func failed(_ error: any Error) throws -> Outcome {
    if error is CancellationError { throw error }
    return outcome(of: error)
  }

  private static func outcome(of error: any Error) -> Outcome {
    switch error {
    case RestoreError.needsEmail: .waiting("its mail address is not known")
    case RestoreError.needsHandle: .waiting("it has no handle")
    case RestoreError.unpublished: .waiting("\(error)")
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
