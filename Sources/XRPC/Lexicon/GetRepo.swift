public import ATProtocol

/// `com.atproto.sync.getRepo`: a repository as a CAR, or what is new in it.
public struct GetRepo: XRPCStream {
  /// What it declares.
  public typealias DeclaredError = RepoError
  /// Its name.
  public var nsid: String { "com.atproto.sync.getRepo" }
  /// A server puts it together when it is asked.
  public static let isPrepared = true

  /// The account.
  public var did: DID
  /// The revision from which on blocks are wanted; servers may send more, or refuse it.
  public var since: TID?

  /// Asks for a repository.
  public init(did: DID, since: TID? = nil) {
    self.did = did
    self.since = since
  }

  /// The query.
  public var parameters: [(name: String, value: String)] {
    [("did", did.text)] + (since.map { [("since", $0.text)] } ?? [])
  }
}
