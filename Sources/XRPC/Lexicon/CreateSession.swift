package import ATProtocol
package import HTTP
package import IPLD

/// `com.atproto.server.createSession`: logs in.
package struct CreateSession: XRPCQuery {
  /// The errors it declares.
  package enum DeclaredError: String, Sendable, CaseIterable {
    /// The account was taken down.
    case accountTakedown = "AccountTakedown"
    /// A code has been sent by mail, which has to come along.
    case authFactorTokenRequired = "AuthFactorTokenRequired"
  }

  /// Its name.
  package var nsid: String { "com.atproto.server.createSession" }
  /// The tokens of the session.
  package static let answersWithSecrets = true
  /// It has a session made.
  package static let method = HTTPRequest.Method.post
  /// A session that is not used does no harm.
  package static let isRepeatable = true
  /// The session waits as for any request.
  package static let hasOwnLimit = false

  /// A handle, a DID or a mail address.
  package var identifier: String
  /// The account's password, or an app password.
  package var password: Secret
  /// The code that came by mail.
  package var authFactorToken: Secret?
  /// Whether a session is wanted, too, that can do no more than fetch what an account that was
  /// taken down has.
  package var allowTakendown: Bool

  /// Logs in.
  package init(
    identifier: String, password: Secret, authFactorToken: Secret? = nil,
    allowTakendown: Bool = false
  ) {
    self.identifier = identifier
    self.password = password
    self.authFactorToken = authFactorToken
    self.allowTakendown = allowTakendown
  }

  /// What is sent along.
  package var input: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.key("identifier")
    json.string(identifier)
    json.key("password")
    json.string(password.text)
    if let authFactorToken {
      json.key("authFactorToken")
      json.string(authFactorToken.text)
    }
    if allowTakendown {
      json.key("allowTakendown")
      json.boolean(true)
    }
    json.endObject()
    return json.takeBytes()
  }

  /// A session.
  package struct Output: Sendable {
    /// The token for requests.
    package var accessJwt: Secret
    /// The token that another is had for.
    package var refreshJwt: Secret
    /// Who has logged in.
    package var did: DID
    /// The account's DID document, if the server sends it along.
    package var didDoc: IPLDValue?
    /// The mail address, if the server says it.
    package var email: String?
    /// Whether the account is active; nil if the server does not say.
    package var active: Bool?
    /// Why it is not.
    package var status: String?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      accessJwt: Secret(try answer.token("accessJwt")),
      refreshJwt: Secret(try answer.token("refreshJwt")),
      did: try answer.identifier("did", DID.self), didDoc: answer.json["didDoc"],
      email: answer.optionalText("email"),
      active: answer.flag("active"), status: answer.optionalText("status"))
  }
}
