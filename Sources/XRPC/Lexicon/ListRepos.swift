public import ATProtocol
public import IPLD

/// `com.atproto.sync.listRepos`: the accounts of a server, page by page.
public struct ListRepos: XRPCQuery {
  /// Its name.
  public static let nsid = "com.atproto.sync.listRepos"

  /// How many to a page, 1 to 1,000; nil for what the server likes.
  public var limit: Int?
  /// Where to go on.
  public var cursor: String?

  /// Asks for a page.
  public init(limit: Int? = nil, cursor: String? = nil) {
    self.limit = limit
    self.cursor = cursor
  }

  /// The query.
  public var parameters: [(name: String, value: String)] {
    (limit.map { [("limit", "\($0)")] } ?? []) + (cursor.map { [("cursor", $0)] } ?? [])
  }

  /// An account.
  public struct Repo: Sendable, Equatable {
    /// Who.
    public var did: DID
    /// The commit.
    public var head: CID?
    /// The revision.
    public var rev: TID?
    /// Whether it is active; so it is if the server does not say.
    public var active: Bool
    /// Why it is not.
    public var status: String?
  }

  /// A page.
  public struct Output: Sendable, Equatable {
    /// The accounts.
    public var repos: [Repo]
    /// How many of the items have no DID that is one.
    public var malformed: Int
    /// Where to go on.
    public var cursor: String?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    var output = Output(repos: [], malformed: 0, cursor: answer.optionalText("cursor"))
    for item in try answer.items("repos") {
      let item = Answer(item)
      guard let did = item.optionalIdentifier("did", DID.self) else {
        output.malformed += 1
        continue
      }
      output.repos.append(
        Repo(
          did: did, head: item.optionalCID("head"), rev: item.optionalIdentifier("rev", TID.self),
          active: item.flag("active") ?? true, status: item.optionalText("status")))
    }
    return output
  }
}
