import ATProtocol
import Foundation
import IPLD

/// What a server's operator may do.
extension StandInPDS {
  /// Whether a request shows the admin password.
  func isOperator(_ call: Call) -> Bool {
    guard let password = call.behaviour.adminPassword else { return false }
    let wanted = Data("admin:\(password)".utf8).base64EncodedString()
    return call.request["authorization"] == "Basic \(wanted)"
  }

  /// Answers requests with the admin password.
  func answerOperator(_ method: String, _ call: Call) throws {
    guard isOperator(call), let input = try? DataModelJSON.decode(call.request.body).map
    else { return try call.refuse(401, "AuthenticationRequired", "Authentication Required") }
    if method.hasSuffix("createInviteCode") {
      let code = update { state in
        state.invitesMade += 1
        let code = "invite-\(state.invitesMade)"
        state.behaviour.invites?.insert(code)
        return code
      }
      return try call.send(["code": .string(code)])
    }
    guard let account = find(input["did"]?.string ?? ""), let password = input["password"]?.string
    else { return try call.refuse(400, "InvalidRequest", "no such account") }
    account.password = password
    try call.response.send()
  }
}
