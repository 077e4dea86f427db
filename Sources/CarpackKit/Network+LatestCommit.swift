public import ATProtocol
public import HTTP
public import IPLD
internal import XRPC

extension Network {
  /// The head of an account's repository.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - service: its server, as `https://host`.
  /// - Returns: the CID and the revision of its newest commit.
  /// - Throws: `XRPCError` if the server refuses; `TransportError` if no whole answer came.
  public func latestCommit(of did: DID, at service: String) async throws -> (cid: CID, rev: TID) {
    try await XRPCClient(service: service, network: self).call(.getLatestCommit(did))
  }
}
