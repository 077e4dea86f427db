package import ATProtocol
internal import Files
package import HTTP
internal import IPLD
internal import XRPC

/// An account as the PLC directory has it now, and changes of that, each sent once.
///
/// 1. An operation is in the journal, on the medium, before it is sent.
/// 2. Before anything is sent the directory is asked for the account's history: what is in it is not
///    sent again, and an operation that does not follow its last one is not sent at all.
package struct PLCUpdate: Sendable {
  /// The account.
  package let did: DID
  /// Its history, checked.
  let log: PLCLog
  /// Its state.
  let state: PLCState
  private let network: Network
  private let now: @Sendable () -> String
  private var directory: PLCDirectory { PLCDirectory(network: network) }

  /// How often the directory is asked for what it was told, and how long it is waited between, in
  /// seconds.
  private static let (patience, interval) = (5, 2.0)

  /// Asks the directory.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - network: the way to servers and the directory.
  ///   - now: the moment, in RFC 3339 and UTC.
  /// - Throws: as ``log(of:_:)`` does; `PLCSuccessor.Fault` for an account that was given up.
  package init(of did: DID, network: Network, now: @escaping @Sendable () -> String) async throws {
    (self.did, self.network, self.now) = (did, network, now)
    log = try await Self.log(of: did, network)
    guard let state = log.state else { throw PLCSuccessor.Fault.ended }
    self.state = state
  }

  /// An account's history, checked.
  ///
  /// - Throws: `IdentityError` for an account without one; ``BackupError/notGenuine(_:)`` for one
  ///   that does not hold.
  static func log(of did: DID, _ network: Network) async throws -> PLCLog {
    let log = try await PLCDirectory(network: network).log(of: did)
    do throws(PLCFault) {
      _ = try PLCHistory(validating: log, of: did)
    } catch {
      throw BackupError.notGenuine("the PLC log of \(did) does not hold: \(error)")
    }
    return log
  }

  /// An operation signed here.
  package func sign(_ state: PLCState, with key: PrivateKey) throws(PLCSuccessor.Fault)
    -> PLCSuccessor
  {
    try PLCSuccessor(state, after: log, of: did, signing: key, now: time)
  }

  /// An operation signed by a server, for the account's owner.
  ///
  /// - Parameters:
  ///   - state: what it says.
  ///   - client: what asks the server, as the owner.
  ///   - mailCode: the code that the server has sent by mail.
  ///   - asksForCode: asks for that code, once it was sent.
  func sign(
    _ state: PLCState, by client: XRPCClient, mailCode: Secret?, asking asksForCode: CodeQuestion
  ) async throws -> PLCSuccessor {
    var code = mailCode
    if code == nil {
      try await client.perform(.requestPLCOperationSignature())
      code = asksForCode(client.service, "signing the operation")
    }
    guard let code else { throw RestoreError.codeSent(client.service) }
    let operation = try await client.call(.signPLCOperation(state, code: code))
    return try check(operation, says: state)
  }

  /// An operation that was signed elsewhere, or before, checked against what it was to say.
  func check(_ operation: IPLDValue, says state: PLCState) throws(PLCSuccessor.Fault)
    -> PLCSuccessor
  {
    try PLCSuccessor(checking: operation, state, after: log, of: did, now: time)
  }

  private var time: UnixTime { UnixTime(now()) ?? UnixTime(microseconds: .max) }

  /// Sends an operation, and finds out from the directory whether it counts.
  ///
  /// - Parameter server: the server that hands it to the directory; nil to do that here.
  /// - Throws: what sending it throws, if the directory does not have the operation;
  ///   ``RestoreError/identityUnchanged(_:)``.
  func send(_ operation: PLCSuccessor, through server: XRPCClient? = nil) async throws {
    var failure: (any Error)?
    do {
      if let server {
        try await server.perform(.submitPLCOperation(operation.operation))
      } else {
        try await directory.submit(operation, of: did)
      }
    } catch {
      // Cut off on the way back, it may have been taken.
      failure = error
    }
    for round in 0..<Self.patience {
      if round > 0 { try await Task.sleep(for: .seconds(Self.interval)) }
      do {
        let entries = try await directory.log(of: did).entries
        if entries.contains(where: { $0.cid == operation.cid && !$0.isNullified }) { return }
      } catch let error as IdentityError where error.kind == .temporary {
        failure = failure ?? error
        continue
      }
      // What was refused is not there later either.
      if let failure, !Self.isUncertain(failure) { throw failure }
    }
    throw failure ?? RestoreError.identityUnchanged("its log does not have \(operation.cid)")
  }

  private static func isUncertain(_ error: any Error) -> Bool {
    switch error {
    case let error as PLCDirectory.Refusal: error.isTransient
    case let error as XRPCError: error.isTransient
    case is TransportError: true
    default: false
    }
  }
}

/// The keys that may change an account, and adding one of the owner's own.
extension PLCUpdate {
  /// The keys, in the order of their authority, as `did:key:…`.
  package var rotationKeys: [String] { state.rotationKeys }

  /// The place of a key, counted from 0, the highest in authority; nil if it is none of them.
  package func place(of key: VerificationKey) -> Int? { rotationKeys.firstIndex(of: key.didKey) }

  /// An operation signed by the account's server, on which its owner logs in.
  ///
  /// - Parameters:
  ///   - state: what it says.
  ///   - login: the account's own password.
  ///   - mailCode: the code that the server has sent by mail for signing.
  ///   - asksForCode: asks for a code that came by mail.
  /// - Throws: ``RestoreError``, `PLCSuccessor.Fault`; what servers throw.
  package func sign(
    _ state: PLCState, as login: OwnLogin, mailCode: Secret?, asking asksForCode: CodeQuestion
  ) async throws -> PLCSuccessor {
    let server = try await DestinationServer.home(
      of: did, network, login, asking: asksForCode, tell: { _ in })
    return try await sign(state, by: server.client, mailCode: mailCode, asking: asksForCode)
  }

  /// Puts a key in front of all others, so that it outranks those of every server.
  ///
  /// - Parameters:
  ///   - key: the key, which its owner has in a file by now.
  ///   - sign: has an operation signed that says so.
  ///   - show: is shown the operation before it is sent; false keeps it from being sent.
  /// - Returns: Whether it was sent.
  /// - Throws: what `sign` and `show` throw, ``RestoreError``; what the directory throws.
  package func add(
    _ key: VerificationKey, signedBy sign: (PLCState) async throws -> PLCSuccessor,
    show: (RestoreEvent) throws -> Bool
  ) async throws -> Bool {
    var wanted = state
    wanted.rotationKeys.removeAll { $0 == key.didKey }
    wanted.rotationKeys.insert(key.didKey, at: 0)
    let operation = try await sign(wanted)
    guard try show(.operation(operation, from: state, to: wanted)) else { return false }
    try await send(operation)
    return true
  }
}
