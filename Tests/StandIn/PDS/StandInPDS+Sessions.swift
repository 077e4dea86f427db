import ATProtocol
import IPLD

/// `com.atproto.server`: logging in.
extension StandInPDS {
  func createSession(_ call: Call) throws {
    guard call.request.method == "POST",
      let input = try? DataModelJSON.decode(call.request.body).map,
      let identifier = input["identifier"]?.string, let password = input["password"]?.string
    else { return try call.refuse(400, "InvalidRequest", "Error: Input must be JSON") }
    // So that a did:web with a port, which is written with capitals, is found by its handle only.
    let name = call.behaviour.lowercasesNames ? identifier.lowercased() : identifier
    guard
      let account = find(name)
        ?? accounts.first(where: { $0.email == identifier && !identifier.isEmpty }),
      account.password == password || account.appPassword == password
    else {
      throw Call.Refused(
        call.behaviour.wrongPassword, 401, "AuthenticationRequired",
        "Invalid identifier or password")
    }
    if let code = account.loginCode, account.password == password,
      input["authFactorToken"]?.string != code
    {
      return try call.refuse(
        401, "AuthFactorTokenRequired", "A sign in code has been sent to your email address")
    }
    if account.status == .takendown, input["allowTakendown"] != .boolean(true) {
      return try call.refuse(401, "AccountTakedown", "Account has been taken down")
    }
    let other = call.behaviour.logsInAs.flatMap(find)
    try sendSession(other ?? account, isFull: account.password == password, call)
  }

  func refreshSession(_ call: Call) throws {
    guard let token = call.request.bearer,
      let used = update({ $0.sessions.use(refresh: token) }), let account = find(used.did)
    else { return try call.refuse(400, "InvalidToken", "Token could not be verified") }
    if used.wasUsed, let refusal = call.behaviour.usedRefreshToken {
      throw Call.Refused(
        refusal, refusal == .text ? 401 : 400, "ExpiredToken", "Token has been revoked")
    }
    try sendSession(account, isFull: used.isFull, call)
  }

  func getSession(_ call: Call) throws {
    guard let did = try authenticated(call), let account = find(did) else {
      return try call.refuse(401, "AuthenticationRequired", "Authentication Required")
    }
    try call.send([
      "handle": .string(account.handle), "did": .string(did),
      "active": .boolean(account.status == .active),
    ])
  }

  func sendSession(_ account: StandInAccount, isFull: Bool, _ call: Call) throws {
    let tokens = update {
      $0.sessions.open(
        account.did, isFull: isFull, now: Self.now, lifetime: call.behaviour.accessTokenSeconds)
    }
    var answer: IPLDMap = [
      "accessJwt": .string(tokens.access), "refreshJwt": .string(tokens.refresh),
      "handle": .string(account.handle), "did": .string(account.did),
      "didDoc": document(of: account), "active": .boolean(account.status == .active),
    ]
    if !account.email.isEmpty { answer["email"] = .string(account.email) }
    if account.status != .active { answer["status"] = .string(account.status.rawValue) }
    try call.send(answer)
  }

  /// The sender's DID, if the request names it.
  ///
  /// - Throws: `Call.Refused` for a token that is invalid or has expired.
  func authenticated(_ call: Call) throws -> String? {
    guard call.request["authorization"] != nil, !isOperator(call) else { return nil }
    let use = update { state in
      call.request.bearer.flatMap {
        state.sessions.use($0, now: Self.now, requests: call.behaviour.accessTokenRequests)
      }
    }
    guard let use else {
      throw Call.Refused(
        call.behaviour.garbledToken, 400, "InvalidToken", "Token could not be verified")
    }
    if use.isExpired { throw Call.Refused(400, "ExpiredToken", "Token has expired") }
    return use.did
  }
}
