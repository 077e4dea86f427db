import CarpackKit

/// The newest commit of an account.
func latestCommit(
  of did: DID, at service: String,
  with options: NetworkOptions = NetworkOptions(userAgent: "example/1.0 (https://example.com)")
) async throws -> (cid: CID, rev: TID) {
  try await Network(options).latestCommit(of: did, at: service)
}
