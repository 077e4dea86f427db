/// `com.atproto.server.refreshSession`: another token instead of one that is over; the refresh
/// token goes along as the authorization.
public struct RefreshSession: XRPCQuery {
  /// The errors it declares.
  public enum DeclaredError: String, Sendable, CaseIterable {
    /// The account was taken down.
    case accountTakedown = "AccountTakedown"
  }

  /// Its name.
  public var nsid: String { "com.atproto.server.refreshSession" }
  /// The tokens of the session.
  public static let answersWithSecrets = true
  /// It has a token made.
  public static let method = HTTPRequest.Method.post
  /// Where a token may be used once, another session is begun instead.
  public static let isRepeatable = true
  /// The session waits as for any request.
  public static let hasOwnLimit = false

  /// Asks for another token.
  public init() {}

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> CreateSession.Output {
    try CreateSession.read(answer)
  }
}
