public import ATProtocol
public import IPLD

/// `com.atproto.repo.describeRepo`: what a server knows of an account.
public struct DescribeRepo: XRPCQuery {
  /// Its name.
  public static let nsid = "com.atproto.repo.describeRepo"

  /// The account, by its handle or DID.
  public var repo: ATIdentifier

  /// Asks about an account.
  public init(repo: ATIdentifier) { self.repo = repo }

  /// The query.
  public var parameters: [(name: String, value: String)] { [("repo", repo.text)] }

  /// What a server knows.
  public struct Output: Sendable {
    /// Who it is.
    public var did: DID
    /// By which handle; nil if the server knows none that is one.
    public var handle: Handle?
    /// The DID document, as the server sees it; some leave it empty.
    public var didDoc: IPLDValue?
    /// The collections that have records.
    public var collections: [String]
    /// Whether the handle leads back to the account, by the server's account.
    public var handleIsCorrect: Bool?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      did: try answer.identifier("did", DID.self),
      handle: answer.optionalIdentifier("handle", Handle.self), didDoc: answer.json["didDoc"],
      collections: (answer.json["collections"]?.array ?? []).compactMap(\.string),
      handleIsCorrect: answer.flag("handleIsCorrect"))
  }
}
