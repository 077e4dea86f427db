package import ATProtocol
internal import HTTP
internal import IPLD
internal import XRPC

/// The state of an account: what the two servers and the DID document say at one moment.
///
/// It is requested when a restore ends, however it ends, and relies on nothing that was remembered.
package struct RestoreSituation: Sendable {
  /// A server, and what it says of the account.
  package typealias Place = (url: String, standing: ServerStanding)

  /// What the DID's document says.
  package enum Identity: Sendable, Equatable {
    /// It names this server, and a key that signs.
    case names(server: String?, signingKey: String?)
    /// It could not be read: why.
    case unknown(String)
  }

  /// The account: the new one, where one was made of the archive.
  package let did: DID
  /// What its document says.
  package let identity: Identity
  /// The server that is restored to.
  package let new: Place
  /// The server that the account leaves; nil if none is known.
  package let old: Place?
  /// The file with the key of the owner's own that the document names; nil if it names none.
  package let keyFile: String?

  /// How long to wait for each of them, in seconds.
  private static let patience = 10.0

  /// Asks both servers and the directory, at once.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - new: the URL of the server that is restored to.
  ///   - old: that of the server that the account leaves.
  ///   - ownKey: the signing key of the owner's own as `did:key:…`, and the file that holds it.
  /// - Returns: What they say; nil if the task was cancelled.
  static func observed(
    _ did: DID, new: String, old: String?, ownKey: (key: String, file: String)?, _ network: Network
  ) async -> RestoreSituation? {
    guard !Task.isCancelled else { return nil }
    async let newStanding = standing(of: did, at: new, network)
    async let oldStanding = standing(of: did, at: old, network)
    async let identity = identity(of: did, network)
    let said = await identity
    var keyFile: String?
    if let ownKey, case .names(_, ownKey.key) = said { keyFile = ownKey.file }
    let standings = await (new: newStanding, old: oldStanding)
    guard !Task.isCancelled, let there = standings.new else { return nil }
    return RestoreSituation(
      did: did, identity: said, new: (new, there),
      old: old.flatMap { url in standings.old.map { (url, $0) } }, keyFile: keyFile)
  }

  private static func standing(
    of did: DID, at url: String?, _ network: Network
  ) async -> ServerStanding? {
    guard let url else { return nil }
    return await asked(
      { try await ServerStanding(of: did, at: url, network) }, orElse: ServerStanding.silent)
  }

  private static func identity(of did: DID, _ network: Network) async -> Identity {
    await asked(
      {
        let document = try await IdentityResolver(network: network).dids.document(of: did).document
        return .names(server: document.pds, signingKey: document.signingKey?.didKey)
      }, orElse: Identity.unknown)
  }

  /// The answer to a question, or why there is none.
  private static func asked<Value: Sendable>(
    _ question: @escaping @Sendable () async throws -> Value,
    orElse unanswered: @escaping @Sendable (String) -> Value
  ) async -> Value {
    await withTaskGroup(of: Value.self) { group in
      group.addTask {
        do { return try await question() } catch { return unanswered("\(error)") }
      }
      group.addTask {
        try? await Task.sleep(for: .seconds(patience))
        return unanswered("no answer within \(Int(patience)) seconds")
      }
      defer { group.cancelAll() }
      return await group.next() ?? unanswered("interrupted")
    }
  }

  /// What they say, in sentences.
  package var sentences: [String] {
    var sentences: [String] = []
    switch identity {
    case .names(let server, _):
      sentences.append("the DID names \(server ?? "no server")")
      if let keyFile {
        sentences.append(
          "the DID names a signing key of your own, which is in \(keyFile): keep that file until the account is active"
        )
      }
    case .unknown(let why): sentences.append("the server that the DID names is not known (\(why))")
    }
    sentences.append("\(new.url) \(new.standing.sentence)")
    if let old, old.url != new.url {
      sentences.append("\(old.url) \(old.standing.sentence)")
      if case .active = new.standing, case .active = old.standing {
        sentences.append(
          "\(old.url) still shows the account and accepts writes; --deactivate-old ends that")
      }
    }
    return sentences
  }
}
