package import ATProtocol
package import HTTP

/// Resolves accounts: from a handle or a DID to the document, the server and the key, and back to
/// the handle.
///
/// Source: [identity](https://atproto.com/guides/identity). Nothing is asked that is not needed.
package struct IdentityResolver: Sendable {
  private let handles: HandleResolver
  /// Finds documents by DIDs.
  package var dids: DIDResolver
  private let pds: String?

  /// A resolver on the network.
  package init(network: Network, patience: HandleResolver.Patience = HandleResolver.Patience()) {
    self.init(network.options, fetcher: network, patience: patience)
  }

  package init(
    _ options: NetworkOptions, fetcher: any DocumentFetcher, dns: (any TXTResolver)? = nil,
    patience: HandleResolver.Patience = HandleResolver.Patience()
  ) {
    handles = HandleResolver(options, fetcher: fetcher, dns: dns, patience: patience)
    dids = DIDResolver(options, fetcher: fetcher)
    pds = options.pds
  }

  /// The DID of an account; only a handle is asked about.
  ///
  /// - Throws: as ``resolve(_:confirmingHandle:)`` does.
  package func did(of account: ATIdentifier) async throws -> DID {
    if case .did(let did) = account { return did }
    return try await resolve(account).did
  }

  /// Resolves an account.
  ///
  /// If an account was given by its DID and its handle does not lead to it, or a handle's account
  /// does not claim the handle, that is a warning: the account is known anyway.
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
      if confirmingHandle, let handle = identity.document.handle {
        let (source, warnings) = try await confirm(handle, of: did)
        if source != nil { identity.handle = handle }
        identity.sources.handle = source
        identity.warnings += warnings
      }
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
          .handleNotClaimed(handle, claimed: identity.document.handle))
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
      documentBytes: bytes, document: document, pds: pds ?? document.pds,
      sources: ResolvedIdentity.Sources(
        document: source,
        pds: pds != nil ? ResolvedIdentity.Sources.user : document.pds != nil ? source : nil))
    if case .failure(let gap) = document.signingKeyResult { identity.warnings.append(.gap(gap)) }
    if pds == nil, case .failure(let gap) = document.pdsResult {
      identity.warnings.append(.gap(gap))
    }
    return identity
  }

  /// Asks whether a handle leads to an account that claims it.
  ///
  /// - Returns: who confirmed it, or nil if it was not confirmed; and the warnings.
  /// - Throws: `CancellationError`.
  package func confirm(_ handle: Handle, of did: DID) async throws
    -> (source: String?, warnings: [IdentityWarning])
  {
    do {
      let answer = try await handles.resolve(handle)
      guard answer.did == did || answer.isAuthoritative else {
        throw IdentityError.handleNotFound(handle, ["\(answer.source) names \(answer.did)"])
      }
      var warnings: [IdentityWarning] = []
      if answer.did != did { warnings.append(.handleLeadsElsewhere(handle, answer.did)) }
      if let other = answer.conflict {
        warnings.append(.conflict(handle, dns: answer.did, website: other))
      }
      return (answer.did == did ? answer.source : nil, warnings)
    } catch let error as IdentityError {
      return (nil, [.handleNotConfirmed(handle, error)])
    }
  }
}
