public import ATProtocol
public import IPLD

/// `com.atproto.server.createSession`: logs in.
public struct CreateSession: XRPCQuery {
  /// The errors it declares.
  public enum DeclaredError: String, Sendable, CaseIterable {
    /// The account was taken down.
    case accountTakedown = "AccountTakedown"
    /// A code has been sent by mail, which has to come along.
    case authFactorTokenRequired = "AuthFactorTokenRequired"
  }

  /// Its name.
  public var nsid: String { "com.atproto.server.createSession" }
  /// The tokens of the session.
  public static let answersWithSecrets = true
  /// It has a session made.
  public static let method = HTTPRequest.Method.post
  /// A session that is not used does no harm.
  public static let isRepeatable = true
  /// The session waits as for any request.
  public static let hasOwnLimit = false

  /// A handle, a DID or a mail address.
  public var identifier: String
  /// The account's password, or an app password.
  public var password: Secret
  /// The code that came by mail.
  public var authFactorToken: Secret?
  /// Whether a session is wanted, too, that can do no more than fetch what an account that was
  /// taken down has.
  public var allowTakendown: Bool

  /// Logs in.
  public init(
    identifier: String, password: Secret, authFactorToken: Secret? = nil,
    allowTakendown: Bool = false
  ) {
    self.identifier = identifier
    self.password = password
    self.authFactorToken = authFactorToken
    self.allowTakendown = allowTakendown
  }

  /// What is sent along.
  public var input: [UInt8] {
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
  public struct Output: Sendable {
    /// The token for requests.
    public var accessJwt: Secret
    /// The token that another is had for.
    public var refreshJwt: Secret
    /// Who has logged in.
    public var did: DID
    /// The account's DID document, if the server sends it along.
    public var didDoc: IPLDValue?
    /// The mail address, if the server says it.
    public var email: String?
    /// Whether the account is active; nil if the server does not say.
    public var active: Bool?
    /// Why it is not.
    public var status: String?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      accessJwt: Secret(try answer.token("accessJwt")),
      refreshJwt: Secret(try answer.token("refreshJwt")),
      did: try answer.identifier("did", DID.self), didDoc: answer.json["didDoc"],
      email: answer.optionalText("email"),
      active: answer.flag("active"), status: answer.optionalText("status"))
  }
}
