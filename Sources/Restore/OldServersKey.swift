internal import ATProtocol
internal import IPLD
internal import XRPC

/// A rotation key of an account that provably belongs to a server, and not to the owner.
///
/// A key without such evidence may be a second key of the account's owner.
package struct OldServersKey: Sendable, Equatable {
  /// What shows that the key is the server's.
  package enum Evidence: String, Sendable {
    /// The server recommends it for the account.
    case recommended = "the server recommends it"
    /// The server recommended it when the archive was made.
    case archived = "the server recommended it at the time of the backup"
    /// The operation that put the account on the server added this key, and no other.
    case log = "it was added to the DID when the account came to the server"
  }

  /// The key, as `did:key:…`.
  package let key: String
  /// What shows it.
  package let evidence: Evidence
}

extension RestorePlan {
  /// The old server's keys among the account's.
  ///
  /// - Parameter tell: called with what a person should know.
  func findOldServersKeys(_ tell: (String) -> Void) async throws -> [OldServersKey] {
    guard let old, let present else { return [] }
    var recommended: [String] = []
    if let client = old.client {
      recommended = try await client.call(.getRecommendedDIDCredentials()).rotationKeys
    }
    let archived = try archivedCredentials(of: old.url, tell)?.rotationKeys ?? []
    let logged = (try? ServerOrigin(old.url)).map { present.history.rotationKeys(of: $0) } ?? []
    return present.rotationKeys.compactMap { key in
      let evidence: OldServersKey.Evidence? =
        if recommended.contains(key) {
          .recommended
        } else if archived.contains(key) {
          .archived
        } else {
          logged.contains(key) ? .log : nil
        }
      return evidence.map { OldServersKey(key: key, evidence: $0) }
    }
  }

  /// What a server recommended for the account when its private data was backed up; nil if that is
  /// not in the archive, or is of another server.
  private func archivedCredentials(
    of server: String, _ tell: (String) -> Void
  ) throws -> PLCCredentials? {
    guard let bytes = try source.archived.ownerAnswer(.credentials) else { return nil }
    guard let json = try? DataModelJSON.decode(bytes), let credentials = PLCCredentials(json) else {
      tell(
        "the archive has an answer of the old server to \(OwnerData.credentials.rawValue) that cannot be read: keys are not listed that only this answer shows to be that server's"
      )
      return nil
    }
    return AccountRestore.isSame(credentials.pds.endpoint, server) ? credentials : nil
  }
}
