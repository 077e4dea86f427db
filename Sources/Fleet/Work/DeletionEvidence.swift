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

  /// Looks for evidence; nil if there is none.
  ///
  /// - Throws: `IdentityError`, `PLCLogError`, `PLCFault`, `XRPCError`, `TransportError`.
  static func find(of did: DID, _ network: Network) async throws -> DeletionEvidence? {
    let resolver = IdentityResolver(network: network).dids
    let server: String?
    if did.method == "plc" {
      let bytes = try await resolver.plcLog(of: did)
      let history = try PLCHistory(validating: PLCLog(bytes.span, of: did), of: did)
      if history.tombstone != nil { return .tombstone }
      server = history.current?.operation.pds?.text
    } else {
      server = try await resolver.document(of: did).document.pds
    }
    guard let server,
      try AddressPolicy(network.options).permits(HTTPURL(server), isRedirected: false)
    else { return nil }
    do {
      let status = try await XRPCClient(service: server, network: network).call(.getRepoStatus(did))
      return status == "deleted" ? .server : nil
    } catch let error as XRPCError where error.declared(RepoError.self) == .notFound {
      return nil
    }
  }
}
