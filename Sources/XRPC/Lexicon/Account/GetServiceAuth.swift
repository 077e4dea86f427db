package import ATProtocol
package import HTTP

/// `com.atproto.server.getServiceAuth`: a token with which the account's server vouches for its
/// owner to another service.
package struct GetServiceAuth: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.server.getServiceAuth" }
  /// The token.
  package static let answersWithSecrets = true

  /// The service that the token is for.
  package var audience: DID
  /// The method that it is for.
  package var method: String

  /// Asks for a token.
  package init(audience: DID, method: String) {
    self.audience = audience
    self.method = method
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    [("aud", audience.text), ("lxm", method)]
  }

  /// Reads the token.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Secret {
    Secret(try answer.token("token"))
  }
}
