package import ATProtocol
package import HTTP

/// `com.atproto.server.createAccount`: an account on a server, for a DID that there is or for a new
/// one.
///
/// An account for a DID that there is needs a token that the DID's key has signed, and is
/// deactivated until the DID document names the server.
package struct CreateAccount: XRPCQuery {
  /// The errors it declares.
  package enum DeclaredError: String, Sendable, CaseIterable {
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
  package var nsid: String { "com.atproto.server.createAccount" }
  /// The tokens of a session.
  package static let answersWithSecrets = true
  /// It has an account made.
  package static let method = HTTPRequest.Method.post

  /// The DID; nil for a new one.
  package var did: DID?
  /// The handle.
  package var handle: Handle
  /// The mail address.
  package var email: String
  /// The password.
  package var password: Secret
  /// The invite code.
  package var inviteCode: Secret?

  /// Asks for an account.
  package init(
    did: DID?, handle: Handle, email: String, password: Secret, inviteCode: Secret? = nil
  ) {
    self.did = did
    self.handle = handle
    self.email = email
    self.password = password
    self.inviteCode = inviteCode
  }

  /// What is sent along.
  package var input: [UInt8] {
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
  package var secrets: [Secret] { [password] + (inviteCode.map { [$0] } ?? []) }

  /// The account.
  package struct Output: Sendable {
    /// Its DID.
    package var did: DID
    /// Its handle.
    package var handle: Handle?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      did: try answer.identifier("did", DID.self),
      handle: answer.optionalIdentifier("handle", Handle.self))
  }
}
