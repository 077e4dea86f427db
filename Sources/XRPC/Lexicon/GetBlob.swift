package import ATProtocol
package import IPLD

/// `com.atproto.sync.getBlob`: the bytes of a blob.
package struct GetBlob: XRPCStream {
  /// The errors it declares; the reference server says `InvalidRequest` where it should say
  /// `BlobNotFound`.
  package enum DeclaredError: String, Sendable, CaseIterable {
    /// The server does not have it.
    case blobNotFound = "BlobNotFound"
    /// There is no such account here.
    case repoNotFound = "RepoNotFound"
    /// The server's operator has taken the account down.
    case repoTakendown = "RepoTakendown"
    /// The account is suspended.
    case repoSuspended = "RepoSuspended"
    /// The account's owner has deactivated it.
    case repoDeactivated = "RepoDeactivated"
  }

  /// Its name.
  package var nsid: String { "com.atproto.sync.getBlob" }
  /// It lies there, as a file does.
  package static let isPrepared = false

  /// The account.
  package var did: DID
  /// The blob.
  package var cid: CID

  /// Asks for a blob.
  package init(did: DID, cid: CID) {
    self.did = did
    self.cid = cid
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    [("did", did.text), ("cid", "\(cid)")]
  }
}
