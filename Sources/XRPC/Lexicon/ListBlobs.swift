package import ATProtocol
internal import HTTP
package import IPLD

/// `com.atproto.sync.listBlobs`: the blobs that an account's records refer to, page by page.
///
/// The reference server gives a cursor with every page that is not empty: the end is an empty page
/// or one without a cursor, never a short one.
package struct ListBlobs: XRPCQuery {
  /// What it declares.
  package typealias DeclaredError = RepoError
  /// Its name.
  package var nsid: String { "com.atproto.sync.listBlobs" }

  /// The account.
  package var did: DID
  /// The revision after which records have to be.
  package var since: TID?
  /// How many to a page, 1 to 1,000; nil for what the server likes.
  package var limit: Int?
  /// Where to go on.
  package var cursor: String?

  /// Asks for a page.
  package init(did: DID, since: TID? = nil, limit: Int? = nil, cursor: String? = nil) {
    self.did = did
    self.since = since
    self.limit = limit
    self.cursor = cursor
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    var parameters = [(name: "did", value: did.text)]
    if let since { parameters.append(("since", since.text)) }
    if let limit { parameters.append(("limit", "\(limit)")) }
    if let cursor { parameters.append(("cursor", cursor)) }
    return parameters
  }

  /// A page.
  package struct Output: Sendable, Equatable {
    /// The blobs.
    package var cids: [CID]
    /// What stands among them and is no CID.
    package var malformed: [String]
    /// Where to go on; text, also where a server writes a number.
    package var cursor: String?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    var output = Output(cids: [], malformed: [], cursor: answer.optionalText("cursor"))
    for item in try answer.items("cids") {
      let text = item.string ?? ""
      do throws(CIDError) {
        output.cids.append(try CID(text))
      } catch {
        output.malformed.append(Excerpt.of(text))
      }
    }
    return output
  }
}
