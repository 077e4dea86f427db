package import ATProtocol
package import HTTP
internal import IPLD

// Methods that a server's operator may call, by the admin password.

extension XRPCCall {
  /// `com.atproto.admin.updateAccountPassword`: another password for an account.
  package static func updateAccountPassword(of did: DID, _ password: Secret, admin: Secret)
    -> XRPCCall
  {
    XRPCCall(
      post: "com.atproto.admin.updateAccountPassword", hiding: [password, admin],
      isRepeatable: true, json(["did": .string(did.text), "password": .string(password.text)])
    ).asAdmin(admin)
  }

  /// The same, as the server's operator.
  fileprivate func asAdmin(_ password: Secret) -> XRPCCall {
    with { $0.fields.append(("Authorization", Self.adminAuthorization(password))) }
  }

  /// What shows a server that its operator asks (RFC 7617).
  static func adminAuthorization(_ password: Secret) -> String {
    let text = Base64.encode(Array("admin:\(password.text)".utf8))
    return "Basic \(text)" + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
  }
}

extension XRPCQuery<Secret> {
  /// `com.atproto.server.createInviteCode`: an invite code that can be used once.
  package static func createInviteCode(admin: Secret) -> XRPCQuery {
    let call = XRPCCall(
      post: "com.atproto.server.createInviteCode", hiding: [admin], isRepeatable: true,
      XRPCCall.json(["useCount": .integer(1)]))
    return XRPCQuery(call.asAdmin(admin).with { $0.answersWithSecrets = true }) {
      answer throws(AnswerFault) in Secret(try answer.text("code"))
    }
  }
}
