internal import ATProtocol
internal import XRPC

/// A rotation key of an account that is shown to be a server's, and not the owner's.
///
/// A key of which nothing shows whose it is may be a second one of the owner's.
package struct OldServersKey: Sendable, Equatable {
  /// What shows that the key is the server's.
  package enum Evidence: String, Sendable {
    /// The server recommends it for the account.
    case recommended = "the server recommends it"
    /// The operation that put the account on the server brought this key along, and no other.
    case log = "it came into the DID when the account came to the server"
  }

  /// The key, as `did:key:…`.
  package let key: String
  /// What shows it.
  package let evidence: Evidence
}

extension RestorePlan {
  /// The old server's keys among the account's.
  func findOldServersKeys() async throws -> [OldServersKey] {
    guard let old, let present else { return [] }
    var recommended: [String] = []
    if let client = old.client {
      recommended = try await client.call(.getRecommendedDIDCredentials()).rotationKeys
    }
    let logged = (try? ServerOrigin(old.url)).map { present.history.rotationKeys(of: $0) } ?? []
    return present.rotationKeys.compactMap { key in
      recommended.contains(key)
        ? OldServersKey(key: key, evidence: .recommended)
        : logged.contains(key) ? OldServersKey(key: key, evidence: .log) : nil
    }
  }
}
