package import ATProtocol
package import HTTP

/// Finds out about accounts: from a handle or a DID to the document, the server and the key, and
/// back to the handle.
///
/// Source: [identity](https://atproto.com/guides/identity). Nothing is asked that is not needed.
package struct IdentityResolver: Sendable {
  /// Finds accounts by handles.
  package let handles: HandleResolver
  /// Finds documents by DIDs.
  package let dids: DIDResolver
  private let pds: String?

  /// A resolver on the network.
  package init(network: Network) {
    self.init(
      network.options, handles: HandleResolver(network.options, fetcher: network),
      dids: DIDResolver(network.options, fetcher: network))
  }

  package init(_ options: NetworkOptions, handles: HandleResolver, dids: DIDResolver) {
    self.handles = handles
    self.dids = dids
    pds = options.pds
  }

  /// Finds out about an account.
  ///
  /// A handle that does not lead to the account that was asked for by its DID, or whose account
  /// does not claim it, is a warning: the account is known all the same.
  ///
  /// - Parameters:
  ///   - account: a handle, or a DID.
  ///   - confirmingHandle: whether the handle that a DID's document claims is asked about.
  /// - Throws: ``IdentityError`` if a handle leads to no account, or there is no document;
  ///   `CancellationError`.
  package func resolve(_ account: ATIdentifier, confirmingHandle: Bool = true) async throws
    -> ResolvedIdentity
  {
    switch account {
    case .did(let did):
      var identity = try await identity(of: did)
      if confirmingHandle { try await confirmHandle(of: &identity) }
      return identity
    case .handle(let handle):
      let answer = try await handles.resolve(handle)
      var identity = try await identity(of: answer.did)
      identity.sources.handle = answer.source
      // A document may claim several; the first is what the account goes by.
      if identity.document.handles.contains(handle) {
        identity.handle = handle
      } else if answer.isAuthoritative {
        identity.warnings.append(
          .handleNotClaimed(handle, claimed: identity.claimedHandle))
      } else {
        throw IdentityError.handleNotFound(
          handle, ["\(answer.source) names \(answer.did), which does not claim it"])
      }
      if let other = answer.conflict {
        identity.warnings.append(.conflict(handle, dns: answer.did, website: other))
      }
      return identity
    }
  }

  /// The document of a DID, and what it says; one request.
  private func identity(of did: DID) async throws -> ResolvedIdentity {
    let (bytes, document) = try await dids.document(of: did)
    let source = try dids.documentURL(of: did)
    var identity = ResolvedIdentity(
      did: did, claimedHandle: document.handle, pds: pds ?? document.pds,
      signingKey: document.signingKey, documentBytes: bytes, document: document,
      sources: ResolvedIdentity.Sources(
        document: source,
        pds: pds != nil ? ResolvedIdentity.Sources.user : document.pds != nil ? source : nil),
      warnings: [])
    if case .failure(let gap) = document.signingKeyResult { identity.warnings.append(.gap(gap)) }
    if pds == nil, case .failure(let gap) = document.pdsResult {
      identity.warnings.append(.gap(gap))
    }
    return identity
  }

  /// Asks whether the handle that the document claims leads to the account.
  private func confirmHandle(of identity: inout ResolvedIdentity) async throws {
    guard let handle = identity.claimedHandle else { return }
    let (source, warnings) = try await confirm(handle, of: identity.did)
    if let source {
      identity.handle = handle
      identity.sources.handle = source
    }
    identity.warnings += warnings
  }

  /// Asks whether a handle leads to an account that claims it.
  ///
  /// - Returns: who said that it does, nil if nobody did; and what is not as it should be.
  /// - Throws: `CancellationError`.
  package func confirm(_ handle: Handle, of did: DID) async throws
    -> (source: String?, warnings: [IdentityWarning])
  {
    let answer: HandleResolver.Answer
    do {
      answer = try await handles.resolve(handle)
    } catch let error as IdentityError {
      return (nil, [.handleNotConfirmed(handle, error)])
    }
    var warnings: [IdentityWarning] = []
    if answer.did != did {
      warnings.append(
        answer.isAuthoritative
          ? .handleLeadsElsewhere(handle, answer.did)
          : .handleNotConfirmed(
            handle, .handleNotFound(handle, ["\(answer.source) names \(answer.did)"])))
    }
    if let other = answer.conflict {
      warnings.append(.conflict(handle, dns: answer.did, website: other))
    }
    return (answer.did == did ? answer.source : nil, warnings)
  }
}
