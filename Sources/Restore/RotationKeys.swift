package import ATProtocol
internal import Files
internal import IPLD
package import XRPC

/// The keys that may change an account, and adding one of the owner's own.
package struct RotationKeys: Sendable {
  /// The account.
  package let did: DID
  /// The keys, in the order of their authority, as `did:key:…`.
  package let keys: [String]
  private let log: PLCLog
  private let move: IdentityMove
  private let network: Network

  /// Asks the directory.
  ///
  /// - Throws: `IdentityError` for an account without a log; ``BackupError/notGenuine(_:)`` for a
  ///   log that does not hold.
  package init(of did: DID, network: Network, now: @escaping @Sendable () -> String) async throws {
    self.did = did
    self.network = network
    move = IdentityMove(did: did, directory: PLCDirectory(network: network), now: now)
    log = try await move.log()
    guard let state = log.state else { throw RestoreError.operation(.ended) }
    keys = state.rotationKeys
  }

  /// The place of a key, counted from 0, the highest in authority; nil if it is none of them.
  package func place(of key: VerificationKey) -> Int? { keys.firstIndex(of: key.didKey) }

  /// How an operation gets signed.
  package enum Signing: Sendable {
    /// With a rotation key that is at hand.
    case key(PrivateKey)
    /// By the account's server, as its owner: password, code for logging in, code for signing.
    case server(Secret, login: Secret?, mailCode: Secret?)
  }

  /// Puts a key in front of all others, so that it outranks those of every server.
  ///
  /// - Parameters:
  ///   - key: the key, which its owner has in a file by now.
  ///   - signing: who signs.
  ///   - show: is shown the operation before it is sent; false keeps it from being sent.
  ///   - asksForCode: asks for a code that came by mail.
  /// - Returns: Whether it was sent.
  /// - Throws: ``RestoreError``; what servers and directory throw.
  package func add(
    _ key: VerificationKey, signing: Signing,
    show: (PLCSuccessor, _ changes: [String]) throws -> Bool,
    asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) async throws -> Bool {
    guard var state = log.state else { throw RestoreError.operation(.ended) }
    let before = state
    state.rotationKeys.removeAll { $0 == key.didKey }
    state.rotationKeys.insert(key.didKey, at: 0)
    let operation: PLCSuccessor
    switch signing {
    case .key(let signer): operation = try move.sign(state, after: log, with: signer)
    case .server(let password, let login, let mailCode):
      let signed = try await signedByServer(state, password, login, mailCode, asksForCode)
      operation = try move.check(signed, says: state, after: log)
    }
    guard try show(operation, before.changes(to: state)) else { return false }
    try await move.send(operation) { try await move.directory.submit(operation, of: did) }
    return true
  }

  private func signedByServer(
    _ state: PLCState, _ password: Secret, _ login: Secret?, _ mailCode: Secret?,
    _ asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) async throws -> IPLDValue {
    let identity = try await IdentityResolver(network: network).resolve(
      .did(did), confirmingHandle: false)
    guard let url = identity.pds else { throw BackupError.noServer(did.text) }
    let session = try await Session.begin(
      service: url, network: network, did: did, password: password, code: login,
      asking: asksForCode)
    let client = XRPCClient(service: url, network: network, session: session)
    var code = mailCode
    if code == nil {
      try await client.perform(RequestPLCOperationSignature())
      code = asksForCode(url, "signing the operation")
    }
    guard let code else { throw RestoreError.codeSent(url) }
    return try await client.call(SignPLCOperation(token: code, state: state), as: nil)
  }
}
