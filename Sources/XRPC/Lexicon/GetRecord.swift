public import ATProtocol

/// `com.atproto.sync.getRecord`: a record, or that there is none, with the proof, as a CAR.
public struct GetRecord: XRPCStream {
  /// The errors it declares.
  public enum DeclaredError: String, Sendable, CaseIterable {
    /// There is no such record.
    case recordNotFound = "RecordNotFound"
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
  public static let nsid = "com.atproto.sync.getRecord"
  /// It is a few blocks.
  public static let isPrepared = false

  /// The account.
  public var did: DID
  /// The collection.
  public var collection: NSID
  /// The key of the record.
  public var rkey: RecordKey

  /// Asks for a record.
  public init(did: DID, collection: NSID, rkey: RecordKey) {
    self.did = did
    self.collection = collection
    self.rkey = rkey
  }

  /// The query.
  public var parameters: [(name: String, value: String)] {
    [("did", did.text), ("collection", collection.text), ("rkey", rkey.text)]
  }
}
