package import ATProtocol

/// `com.atproto.sync.getRepo`: a repository as a CAR, or what is new in it.
package struct GetRepo: XRPCStream {
  /// What it declares.
  package typealias DeclaredError = RepoError
  /// Its name.
  package var nsid: String { "com.atproto.sync.getRepo" }
  /// A server puts it together when it is asked.
  package static let isPrepared = true

  /// The account.
  package var did: DID
  /// The revision from which on blocks are wanted; servers may send more, or refuse it.
  package var since: TID?

  /// Asks for a repository.
  package init(did: DID, since: TID? = nil) {
    self.did = did
    self.since = since
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    [("did", did.text)] + (since.map { [("since", $0.text)] } ?? [])
  }
}
