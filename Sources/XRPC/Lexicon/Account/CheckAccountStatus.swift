internal import ATProtocol
package import IPLD

/// `com.atproto.server.checkAccountStatus`: what a server has of the account that asks.
///
/// Equal numbers prove nothing: every upload counts as imported, and references of records that are
/// gone count as expected.
package struct CheckAccountStatus: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.server.checkAccountStatus" }

  /// Asks for it.
  package init() {}

  /// What it has; nil for what the server does not say.
  package struct Output: Sendable, Equatable {
    /// Whether the account is active.
    package var isActivated: Bool?
    /// Whether the DID's document leads to this server.
    package var isDIDValid: Bool?
    /// The head of the repository.
    package var commit: CID?
    /// How many records there are.
    package var records: Int?
    /// How many blobs records refer to.
    package var expectedBlobs: Int?
    /// How many blobs were uploaded.
    package var importedBlobs: Int?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    func number(_ key: String) -> Int? { answer.json[key]?.integer.flatMap { Int(exactly: $0) } }
    return Output(
      isActivated: answer.flag("activated"), isDIDValid: answer.flag("validDid"),
      commit: answer.optionalCID("repoCommit"), records: number("indexedRecords"),
      expectedBlobs: number("expectedBlobs"), importedBlobs: number("importedBlobs"))
  }
}
