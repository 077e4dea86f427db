public import ATProtocol

/// `com.atproto.server.createAccount`: an account on a server, for a DID that there is or for a new
/// one.
///
/// An account for a DID that there is needs a token that the DID's key has signed, and is
/// deactivated until the DID document names the server.
public struct CreateAccount: XRPCQuery {
  /// The errors it declares.
  public enum DeclaredError: String, Sendable, CaseIterable {
    /// The handle is malformed, or too long for the server.
    case invalidHandle = "InvalidHandle"
    /// The password cannot be used.
    case invalidPassword = "InvalidPassword"
    /// The invite code is missing, unknown or used up.
    case invalidInviteCode = "InvalidInviteCode"
    /// Another account has the handle, or it is reserved.
    case handleNotAvailable = "HandleNotAvailable"
    /// Handles under this domain are not given out.
    case unsupportedDomain = "UnsupportedDomain"
    /// The DID does not resolve.
    case unresolvableDid = "UnresolvableDid"
    /// The DID's document does not have what it takes.
    case incompatibleDidDoc = "IncompatibleDidDoc"
    /// The server has an account with this DID.
    case alreadyExists = "AlreadyExists"
  }

  /// Its name.
  public var nsid: String { "com.atproto.server.createAccount" }
  /// The tokens of a session.
  public static let answersWithSecrets = true
  /// It has an account made.
  public static let method = HTTPRequest.Method.post

  /// The DID; nil for a new one.
  public var did: DID?
  /// The handle.
  public var handle: Handle
  /// The mail address.
  public var email: String
  /// The password.
  public var password: Secret
  /// The invite code.
  public var inviteCode: Secret?

  /// Asks for an account.
  public init(
    did: DID?, handle: Handle, email: String, password: Secret, inviteCode: Secret? = nil
  ) {
    self.did = did
    self.handle = handle
    self.email = email
    self.password = password
    self.inviteCode = inviteCode
  }

  /// What is sent along.
  public var input: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    if let did { json.field("did", did.text) }
    json.field("handle", handle.text)
    json.field("email", email)
    json.field("password", password.text)
    if let inviteCode { json.field("inviteCode", inviteCode.text) }
    json.endObject()
    return json.takeBytes()
  }

  /// The password and the code.
  public var secrets: [Secret] { [password] + (inviteCode.map { [$0] } ?? []) }

  /// The account.
  public struct Output: Sendable {
    /// Its DID.
    public var did: DID
    /// Its handle.
    public var handle: Handle?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      did: try answer.identifier("did", DID.self),
      handle: answer.optionalIdentifier("handle", Handle.self))
  }
}
