internal import ATProtocol
package import IPLD

/// `com.atproto.repo.listMissingBlobs`: blobs that the account's records refer to and that the
/// server has no row for, page by page.
///
/// The files are not looked at: a blob whose bytes are gone, or are others, is not listed.
package struct ListMissingBlobs: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.repo.listMissingBlobs" }

  /// How many to a page, 1 to 1,000.
  package var limit: Int
  /// Where to go on.
  package var cursor: String?

  /// Asks for a page.
  package init(limit: Int = 1000, cursor: String? = nil) {
    self.limit = limit
    self.cursor = cursor
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    [(name: "limit", value: "\(limit)")] + (cursor.map { [("cursor", $0)] } ?? [])
  }

  /// A page; the end is one without blobs.
  package struct Output: Sendable, Equatable {
    /// The blobs.
    package var cids: [CID]
    /// Where to go on.
    package var cursor: String?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    var cids: [CID] = []
    for item in try answer.items("blobs") { cids.append(try Answer(item).cid("cid")) }
    return Output(cids: cids, cursor: try answer.cursor())
  }
}
