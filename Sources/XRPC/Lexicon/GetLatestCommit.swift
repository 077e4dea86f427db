package import ATProtocol
package import IPLD

/// `com.atproto.sync.getLatestCommit`: where a repository stands.
package struct GetLatestCommit: XRPCQuery {
  /// What it declares.
  package typealias DeclaredError = RepoError
  /// Its name.
  package var nsid: String { "com.atproto.sync.getLatestCommit" }

  /// The account.
  package var did: DID

  /// Asks about an account.
  package init(did: DID) { self.did = did }

  /// The query.
  package var parameters: [(name: String, value: String)] { [("did", did.text)] }

  /// A commit.
  package struct Output: Sendable, Equatable {
    /// The commit.
    package var cid: CID
    /// Its revision.
    package var rev: TID
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(cid: try answer.cid("cid"), rev: try answer.identifier("rev", TID.self))
  }
}
