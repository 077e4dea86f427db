public import ATProtocol
public import IPLD

/// `com.atproto.sync.getLatestCommit`: where a repository stands.
public struct GetLatestCommit: XRPCQuery {
  /// What it declares.
  public typealias DeclaredError = RepoError
  /// Its name.
  public var nsid: String { "com.atproto.sync.getLatestCommit" }

  /// The account.
  public var did: DID

  /// Asks about an account.
  public init(did: DID) { self.did = did }

  /// The query.
  public var parameters: [(name: String, value: String)] { [("did", did.text)] }

  /// A commit.
  public struct Output: Sendable, Equatable {
    /// The commit.
    public var cid: CID
    /// Its revision.
    public var rev: TID
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(cid: try answer.cid("cid"), rev: try answer.identifier("rev", TID.self))
  }
}
