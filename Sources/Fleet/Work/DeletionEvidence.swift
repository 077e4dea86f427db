internal import ATProtocol
internal import HTTP
internal import XRPC

/// What proves that an account was deleted.
///
/// That its server does not know the account proves nothing: a server that has lost its disk says
/// that of all its accounts.
package enum DeletionEvidence: String, CaseIterable, Sendable {
  /// Its log in the PLC directory, of which every signature was verified, ends with a tombstone.
  case tombstone
  /// The server that its verified identity names says that the account was deleted.
  case server
}

/// A deletion that is proven, and what parties besides the account's server say about it.
package struct Deletion: Equatable, Sendable {
  /// What the others say.
  enum Testimony: Equatable, Sendable {
    /// This one says that the account was deleted.
    case agreed(String)
    /// This one has the account as an active one.
    case denied(String)
    /// No witness gave a usable answer: why.
    case unanswered(String)
    /// There is no witness that knows the account.
    case none
  }

  let evidence: DeletionEvidence
  let testimony: Testimony

  /// Looks for evidence, and asks witnesses; nil if there is no evidence.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - network: the way to servers.
  ///   - witnesses: the origins of relays and mirrors.
  /// - Throws: `IdentityError`, `PLCLogError`, `PLCFault`, `XRPCError`, `TransportError`.
  static func find(of did: DID, _ network: Network, asking witnesses: [String]) async throws
    -> Deletion?
  {
    let resolver = IdentityResolver(network: network).dids
    let server: String?
    if did.method == "plc" {
      let bytes = try await resolver.plcLog(of: did)
      let history = try PLCHistory(validating: PLCLog(bytes.span, of: did), of: did)
      if history.tombstone != nil {
        return Deletion(evidence: .tombstone, testimony: .agreed("the PLC directory"))
      }
      server = history.current?.operation.pds?.text
    } else {
      server = try await resolver.document(of: did).document.pds
    }
    guard let server, let origin = try? ServerOrigin(server).text,
      try AddressPolicy(network.options).permits(HTTPURL(server), isRedirected: false),
      try await status(of: did, at: server, network)?.word == "deleted"
    else { return nil }
    // What the server says itself, by another of its names even, is no second opinion.
    let others = witnesses.filter { $0 != origin }
    return Deletion(
      evidence: .server, testimony: await testimony(of: others, about: did, network))
  }

  /// One who has the account outweighs those who agree; one who agrees those who do not answer.
  private static func testimony(of witnesses: [String], about did: DID, _ network: Network) async
    -> Testimony
  {
    var found = Testimony.none
    for witness in witnesses {
      do {
        // A witness need not know each account.
        guard let status = try await status(of: did, at: witness, network) else { continue }
        if status.isActive { return .denied(witness) }
        if status.word == "deleted" {
          found = .agreed(witness)
        } else if found == .none {
          found = .unanswered("\(witness) says \(status.word ?? "nothing") of it")
        }
      } catch let error where found == .none {
        found = .unanswered("\(witness): \(error)")
      } catch {}
    }
    return found
  }

  /// What a server says of an account; nil if it does not know it.
  private static func status(of did: DID, at server: String, _ network: Network) async throws
    -> RepoStatus?
  {
    do {
      return try await XRPCClient(service: server, network: network).call(.getRepoStatus(did))
    } catch let error as XRPCError where error.declared(RepoError.self) == .notFound {
      return nil
    }
  }
}
