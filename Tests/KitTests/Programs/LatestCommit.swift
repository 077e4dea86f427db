import ATProtocol
import XRPC

/// Where the repository of an account stands.
func latestCommit(of did: DID, at service: String) async throws -> GetLatestCommit.Output {
  let network = try Network(NetworkOptions(userAgent: "example/1.0 (https://example.com)"))
  return try await XRPCClient(service: service, network: network).call(GetLatestCommit(did: did))
}
