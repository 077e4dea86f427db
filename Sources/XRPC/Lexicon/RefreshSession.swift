package import HTTP

/// `com.atproto.server.refreshSession`: another token instead of one that is over; the refresh
/// token goes along as the authorization.
package struct RefreshSession: XRPCQuery {
  /// The errors it declares.
  package enum DeclaredError: String, Sendable, CaseIterable {
    /// The account was taken down.
    case accountTakedown = "AccountTakedown"
  }

  /// Its name.
  package var nsid: String { "com.atproto.server.refreshSession" }
  /// The tokens of the session.
  package static let answersWithSecrets = true
  /// It has a token made.
  package static let method = HTTPRequest.Method.post
  /// Where a token may be used once, another session is begun instead.
  package static let isRepeatable = true
  /// The session waits as for any request.
  package static let hasOwnLimit = false

  /// Asks for another token.
  package init() {}

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> CreateSession.Output {
    try CreateSession.read(answer)
  }
}
