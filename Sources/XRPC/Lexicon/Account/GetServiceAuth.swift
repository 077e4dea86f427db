public import ATProtocol

/// `com.atproto.server.getServiceAuth`: a token with which the account's server vouches for its
/// owner to another service.
public struct GetServiceAuth: XRPCQuery {
  /// Its name.
  public var nsid: String { "com.atproto.server.getServiceAuth" }
  /// The token.
  public static let answersWithSecrets = true

  /// The service that the token is for.
  public var audience: DID
  /// The method that it is for.
  public var method: String

  /// Asks for a token.
  public init(audience: DID, method: String) {
    self.audience = audience
    self.method = method
  }

  /// The query.
  public var parameters: [(name: String, value: String)] {
    [("aud", audience.text), ("lxm", method)]
  }

  /// Reads the token.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Secret {
    Secret(try answer.token("token"))
  }
}
