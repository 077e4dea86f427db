package import ATProtocol
internal import HTTP
package import IPLD

/// `com.atproto.sync.listRepos`: the accounts of a server, page by page.
package struct ListRepos: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.sync.listRepos" }

  /// The longest page that the lexicon allows.
  package static let maximumLimit = 1000
  /// How many times longer than asked for a page may be.
  private static let tolerance = 2

  /// How many to a page, 1 to ``maximumLimit``; nil for what the server likes.
  package var limit: Int?
  /// Where to go on.
  package var cursor: String?

  /// Asks for a page.
  package init(limit: Int? = nil, cursor: String? = nil) {
    self.limit = limit
    self.cursor = cursor
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    (limit.map { [("limit", "\($0)")] } ?? []) + (cursor.map { [("cursor", $0)] } ?? [])
  }

  /// An account.
  package struct Repo: Sendable, Equatable {
    /// Who.
    package var did: DID
    /// The commit.
    package var head: CID?
    /// The revision.
    package var rev: TID?
    /// Whether it is active; so it is if the server does not say.
    package var active: Bool
    /// Why it is not.
    package var status: String?
  }

  /// A page.
  package struct Output: Sendable, Equatable {
    /// The accounts.
    package var repos: [Repo]
    /// Of the items without a valid DID, what stands in its place; empty where nothing does.
    package var malformed: [String]
    /// Where to go on.
    package var cursor: String?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    let items = try answer.items("repos")
    guard items.count <= tolerance * maximumLimit else {
      throw AnswerFault("it lists \(items.count) accounts on one page")
    }
    var output = Output(repos: [], malformed: [], cursor: try answer.cursor())
    for item in items {
      let item = Answer(item)
      guard let did = item.optionalIdentifier("did", DID.self) else {
        output.malformed.append(Excerpt.of(item.optionalText("did") ?? ""))
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
