package import HTTP

/// What fetches the small documents that identities are made of.
///
/// `Network` is the real one.
package protocol DocumentFetcher: Sendable {
  /// Fetches a document; as `Network.get(_:limit:accept:retries:)` does.
  func get(_ url: String, limit: Int, accept: String?, retries: Bool) async throws -> (
    HTTPResponse, [UInt8]
  )
}

extension Network: DocumentFetcher {}
