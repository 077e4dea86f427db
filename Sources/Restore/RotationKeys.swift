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
  private let state: PLCState
  private let update: PLCUpdate
  private let network: Network

  /// Asks the directory.
  ///
  /// - Throws: `IdentityError` for an account without a log; ``BackupError/notGenuine(_:)`` for a
  ///   log that does not hold.
  package init(of did: DID, network: Network, now: @escaping @Sendable () -> String) async throws {
    self.did = did
    self.network = network
    update = PLCUpdate(did: did, network: network, now: now)
    (log, state) = try await update.present()
    keys = state.rotationKeys
  }

  /// The place of a key, counted from 0, the highest in authority; nil if it is none of them.
  package func place(of key: VerificationKey) -> Int? { keys.firstIndex(of: key.didKey) }

  /// How an operation gets signed.
  package enum Signing: Sendable {
    /// With a rotation key that is at hand.
    case key(PrivateKey)
    /// By the account's server, logged in as its owner, with the code that it sent by mail.
    case server(OwnLogin, mailCode: Secret?)
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
    var wanted = state
    wanted.rotationKeys.removeAll { $0 == key.didKey }
    wanted.rotationKeys.insert(key.didKey, at: 0)
    let operation: PLCSuccessor
    switch signing {
    case .key(let signer): operation = try update.sign(wanted, after: log, with: signer)
    case .server(let login, let mailCode):
      let server = try await DestinationServer.home(
        of: did, network, login, asking: asksForCode, tell: { _ in })
      operation = try await update.sign(
        wanted, after: log, by: server.client, mailCode: mailCode, asking: asksForCode)
    }
    guard try show(operation, state.changes(to: wanted)) else { return false }
    try await update.send(operation)
    return true
  }
}
