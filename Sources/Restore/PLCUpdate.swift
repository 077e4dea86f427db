package import ATProtocol
internal import Files
package import HTTP
internal import IPLD
package import SystemPackage
internal import XRPC

/// An account as the PLC directory has it now, and changes of that, each sent once.
///
/// 1. An operation is in the journal, on the medium, before it is sent.
/// 2. Before anything is sent the directory is asked for the account's history: what is in it is
///    not sent again, and an operation that does not follow its last one is not sent at all.
package struct PLCUpdate: Sendable {
  /// The account.
  package let did: DID
  /// Its log, checked.
  let log: PLCLog
  /// What the log proves.
  let history: PLCHistory
  /// Its state.
  let state: PLCState
  /// The time by the directory's clock, or by this computer's if the directory does not say.
  let time: UnixTime
  private let network: Network
  private var directory: PLCDirectory { PLCDirectory(network: network) }

  /// How often the directory is asked for the operation that was sent to it, and the time between,
  /// in seconds.
  private static let (patience, interval) = (5, 2.0)

  /// Asks the directory.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - network: the way to servers and the directory.
  ///   - now: the time by this computer's clock, in RFC 3339 and UTC.
  /// - Throws: `IdentityError` for an account without a log; ``BackupError/notGenuine(_:)`` for a
  ///   log that is not valid; `PLCSuccessor.Fault` for an account that was deleted.
  package init(of did: DID, network: Network, now: @Sendable () -> String) async throws {
    (self.did, self.network) = (did, network)
    let (log, time) = try await PLCDirectory(network: network).log(of: did)
    do throws(PLCFault) {
      history = try PLCHistory(validating: log, of: did)
    } catch {
      throw BackupError.notGenuine("the PLC log of \(did) is not valid: \(error)")
    }
    guard let state = log.state else { throw PLCSuccessor.Fault.ended }
    (self.log, self.state) = (log, state)
    self.time = time ?? UnixTime(now()) ?? UnixTime(microseconds: .max)
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
        let entries = try await directory.log(of: did).log.entries
        if entries.contains(where: { $0.cid == operation.cid && !$0.isNullified }) { return }
      } catch let error as IdentityError where error.kind == .temporary {
        failure = failure ?? error
        continue
      }
      // A refused operation does not appear later.
      if let failure, !Self.isUncertain(failure) { throw failure }
    }
    throw failure ?? RestoreError.identityUnchanged("its log does not have \(operation.cid)")
  }

  private static func isUncertain(_ error: any Error) -> Bool {
    switch error {
    case is PLCDirectory.Refusal, is XRPCError: error.mayPass
    case is TransportError: true
    default: false
    }
  }
}

/// The keys that may change an account, and adding one of the owner's own.
extension PLCUpdate {
  /// The keys, in the order of their authority, as `did:key:…`.
  package var rotationKeys: [String] { state.rotationKeys }

  /// The place of a key, counted from 0, the highest in authority; nil if it is not one of them.
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
  /// It is agreed to before it is signed, for signing uses up the code that came by mail; and what
  /// is signed is in a file until the directory has it.
  ///
  /// - Parameters:
  ///   - key: the key, which its owner has in a file by now.
  ///   - file: where the signed operation is kept until it is sent.
  ///   - sign: has an operation signed that says so.
  ///   - show: called with what is going to happen.
  ///   - agrees: asks whether it may.
  /// - Throws: ``RestoreQuestion/identity`` if it may not; what `sign` throws, ``RestoreError``;
  ///   what the directory throws.
  package func add(
    _ key: VerificationKey, keeping file: FilePath,
    signedBy sign: (PLCState) async throws -> PLCSuccessor, show: (RestoreEvent) -> Void,
    agrees: (RestoreQuestion) -> Bool
  ) async throws {
    var wanted = state
    wanted.rotationKeys.removeAll { $0 == key.didKey }
    wanted.rotationKeys.insert(key.didKey, at: 0)
    guard wanted.rotationKeys.count <= PLCSuccessor.maximumItems else {
      throw PLCSuccessor.Fault.tooMany("rotation keys")
    }
    try history.checkPace(time)
    show(.changes(from: state, to: wanted))
    guard agrees(.identity) else { throw RestoreQuestion.identity }
    let operation: PLCSuccessor
    if let kept = try kept(in: file, saying: wanted) {
      operation = kept
    } else {
      operation = try await sign(wanted)
      let text = DataModelJSON.encode(operation.operation)
      try AtomicFile.save(to: file, replacing: true, isPrivate: true) { try $0(text.span) }
    }
    show(.operation(operation, from: state, to: wanted))
    try await send(operation)
    try AtomicFile.remove(file)
  }

  /// The operation that an earlier run has kept; nil if there is none that can be sent now.
  private func kept(in file: FilePath, saying state: PLCState) throws -> PLCSuccessor? {
    guard let bytes = try AtomicFile.read(file) else { return nil }
    do { return try check(DataModelJSON.decode(bytes), says: state) } catch {
      // Another one is signed in its place.
      return nil
    }
  }
}
