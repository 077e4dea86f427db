import ATProtocol
import XRPC

/// Where the repository of an account stands.
func latestCommit(
  of did: DID, at service: String,
  with options: NetworkOptions = NetworkOptions(userAgent: "example/1.0 (https://example.com)")
) async throws -> GetLatestCommit.Output {
  let client = XRPCClient(service: service, network: try Network(options))
  return try await client.call(GetLatestCommit(did: did))
}
