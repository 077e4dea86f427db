import ATProtocol
import Foundation
import IPLD

/// The side of a server that is written to: accounts, repositories, blobs, identities.
///
/// Refusals, statuses and the order of checks are those observed at the reference server, its
/// oddities included.
extension StandInPDS {
  /// What a method wants of the request.
  struct Form {
    /// What is sent along.
    enum Body { case none, json, bytes(String?) }
    var method = "POST"
    var body = Body.json
    /// Who may call it.
    enum Access { case anyone, anyPassword, ownPassword }
    var access = Access.ownPassword
  }

  static let writingMethods: [String: Form] = [
    "com.atproto.server.getServiceAuth": Form(method: "GET", body: .none),
    "com.atproto.server.createAccount": Form(access: .anyone),
    "com.atproto.server.checkAccountStatus": Form(
      method: "GET", body: .none, access: .anyPassword),
    "com.atproto.server.activateAccount": Form(body: .none),
    "com.atproto.server.deactivateAccount": Form(),
    "com.atproto.repo.importRepo": Form(body: .bytes("application/vnd.ipld.car")),
    "com.atproto.repo.uploadBlob": Form(body: .bytes(nil), access: .anyPassword),
    "com.atproto.repo.listMissingBlobs": Form(method: "GET", body: .none, access: .anyPassword),
    "com.atproto.repo.createRecord": Form(access: .anyPassword),
    "com.atproto.repo.putRecord": Form(access: .anyPassword),
    "com.atproto.repo.deleteRecord": Form(access: .anyPassword),
    "com.atproto.repo.applyWrites": Form(access: .anyPassword),
    "com.atproto.repo.getRecord": Form(method: "GET", body: .none, access: .anyone),
    "com.atproto.identity.getRecommendedDidCredentials": Form(
      method: "GET", body: .none, access: .anyPassword),
    "com.atproto.identity.requestPlcOperationSignature": Form(body: .none),
    "com.atproto.identity.signPlcOperation": Form(),
    "com.atproto.identity.submitPlcOperation": Form(access: .anyPassword),
    "app.bsky.actor.putPreferences": Form(access: .anyPassword),
  ]

  /// Its own DID.
  package var serviceDID: String { "did:web:\(behaviour.hostName)%3A\(server.port)" }
  /// Its address as it calls itself.
  package var publicURL: String { "http://\(behaviour.hostName):\(server.port)" }
  /// The domain under which it gives out handles.
  package var userDomain: String { behaviour.userDomain }
  /// The key with which it signs operations of accounts that it has made.
  package var rotationKey: SigningKey { SigningKey(seed: "carpack stand-in server \(server.port)") }

  /// Checks a call as far as that needs nothing of its meaning, and answers it.
  func write(_ method: String, _ call: Call) throws {
    guard let form = Self.writingMethods[method] else { return }
    guard call.request.method == form.method else {
      throw Call.Refused(
        400, "InvalidRequest", "Incorrect HTTP method (\(call.request.method))")
    }
    let owner = try authorize(call, form.access, method)
    let input = try checkBody(call, form.body)
    switch method {
    case "com.atproto.server.createAccount": return try createAccount(input, call)
    case "com.atproto.repo.getRecord": return try getRecordValue(call)
    default: break
    }
    guard let owner else { throw Call.Refused(401, "AuthMissing", "Authentication Required") }
    switch method {
    case "com.atproto.server.getServiceAuth": try getServiceAuth(owner, call)
    case "com.atproto.server.checkAccountStatus": try checkAccountStatus(owner, call)
    case "com.atproto.server.activateAccount": try activateAccount(owner, call)
    case "com.atproto.server.deactivateAccount":
      if let text = input["deleteAfter"]?.string, UnixTime(text) == nil {
        throw Call.Refused(
          400, "InvalidRequest", "Input/deleteAfter must be an valid atproto datetime")
      }
      owner.status = .deactivated
      try call.response.send()
    case "com.atproto.repo.importRepo": try importRepo(owner, call)
    case "com.atproto.repo.uploadBlob": try uploadBlob(owner, call)
    case "com.atproto.repo.listMissingBlobs": try listMissingBlobs(owner, call)
    case "com.atproto.repo.createRecord", "com.atproto.repo.putRecord",
      "com.atproto.repo.deleteRecord":
      try writeRecord(method, owner, input, call)
    case "com.atproto.repo.applyWrites": try applyWrites(owner, input, call)
    case "com.atproto.identity.getRecommendedDidCredentials":
      if let page = owner.privatePages[method]?.first {
        return try call.response.send(Array(page.utf8), type: "application/json; charset=utf-8")
      }
      try call.send(credentials(of: owner))
    case "com.atproto.identity.requestPlcOperationSignature": try sendCode(owner, call)
    case "com.atproto.identity.signPlcOperation": try signOperation(owner, input, call)
    case "com.atproto.identity.submitPlcOperation": try submitOperation(owner, input, call)
    case "app.bsky.actor.putPreferences":
      guard let items = input["preferences"]?.array,
        items.allSatisfy({ $0["$type"]?.string?.hasPrefix("app.bsky.") == true })
      else {
        throw Call.Refused(
          400, "InvalidRequest", "Some preferences are not in the app.bsky namespace")
      }
      let text = IPLDValue.map(["preferences": .array(items)]).json()
      owner.privatePages["app.bsky.actor.getPreferences"] = [text]
      try call.response.send()
    default: try call.refuse(501, "MethodNotImplemented", "Method Not Implemented")
    }
  }

  private func authorize(_ call: Call, _ access: Form.Access, _ method: String) throws
    -> StandInAccount?
  {
    if case .anyone = access { return nil }
    guard call.request["authorization"] != nil else {
      throw Call.Refused(401, "AuthMissing", "Authentication Required")
    }
    guard let did = try authenticated(call), let account = find(did) else {
      throw Call.Refused(400, "InvalidToken", "Token could not be verified")
    }
    if case .ownPassword = access, let token = call.request.bearer,
      update({ $0.sessions.access[token]?.isFull }) != true
    {
      throw Call.Refused(400, "InvalidToken", "Bad token scope")
    }
    return account
  }

  private func checkBody(_ call: Call, _ form: Form.Body) throws -> IPLDMap {
    let type = call.request["content-type"]?.split(separator: ";").first.map {
      $0.split(separator: " ").joined().lowercased()
    }
    let length = call.request["content-length"].flatMap { Int($0) }
    switch form {
    case .none:
      guard call.request.body.isEmpty, type == nil else {
        throw Call.Refused(
          400, "InvalidRequest", "A request body was provided when none was expected")
      }
      return [:]
    case .json:
      guard call.request.body.count <= 150 << 10 else {
        throw Call.Refused(413, "PayloadTooLargeError", "request entity too large")
      }
      let value = try? DataModelJSON.decode(call.request.body)
      if type == "application/json", !call.request.body.isEmpty, value == nil {
        throw Call.Refused(400, "SyntaxError", "Unexpected token in JSON")
      }
      guard type == "application/json", let map = value?.map else {
        throw Call.Refused(
          400, "InvalidRequest", "A request body is expected but none was provided")
      }
      return map
    case .bytes(let wanted):
      guard let type, wanted == nil || type == wanted else {
        throw Call.Refused(
          400, "InvalidRequest", "Request encoding (Content-Type) required but not provided")
      }
      if length == 0 {
        throw Call.Refused(
          400, "InvalidRequest", "A request body is expected but none was provided")
      }
      return [:]
    }
  }

  // MARK: Accounts

  private func getServiceAuth(_ owner: StandInAccount, _ call: Call) throws {
    guard let audience = call.request.parameter("aud"), audience.hasPrefix("did:") else {
      throw Call.Refused(400, "InvalidRequest", "Error: Params must have the property \"aud\"")
    }
    let method = call.request.parameter("lxm")
    let token = Self.serviceToken(
      of: owner.did, for: audience, method: method, key: owner.key, now: Self.now)
    try call.send(["token": .string(token)])
  }

  /// A token that vouches for an account.
  package static func serviceToken(
    of did: String, for audience: String, method: String?, key: SigningKey, now: Double
  ) -> String {
    let header: IPLDMap = [
      "typ": .string("JWT"), "alg": .string(key.curve == .k256 ? "ES256K" : "ES256"),
    ]
    var claims: IPLDMap = [
      "iss": .string(did), "aud": .string(audience), "iat": .integer(Int128(now)),
      "exp": .integer(Int128(now + 60)), "jti": .string("0123456789abcdef0123456789abcdef"),
    ]
    if let method { claims["lxm"] = .string(method) }
    let signed = [header, claims].map { Base64URL.encode(Array(IPLDValue.map($0).json().utf8)) }
      .joined(separator: ".")
    return signed + "." + Base64URL.encode(key.sign(Array(signed.utf8)))
  }

  private func createAccount(_ input: IPLDMap, _ call: Call) throws {
    typealias Refused = Call.Refused
    if let limit = call.behaviour.accountLimit {
      guard update({ $0.accountsMade.admit(limit, now: Self.now, call.response) }) else {
        throw Refused(429, "RateLimitExceeded", "Rate Limit Exceeded")
      }
    }
    guard let directory else { throw Refused(501, "MethodNotImplemented", "no directory") }
    guard let handle = input["handle"]?.string, (try? Handle(handle)) != nil else {
      throw Refused(400, "InvalidRequest", "Input/handle must be a valid handle")
    }
    guard input["plcOp"] == nil else {
      throw Refused(400, "InvalidRequest", "Unsupported input: \"plcOp\"")
    }
    let did = input["did"]?.string
    if let did {
      guard (try? DID(did)) != nil else {
        throw Refused(400, "InvalidRequest", "Input/did must be a valid did")
      }
      if call.request.bearer != nil { try checkServiceToken(call, of: did, directory) }
    }
    guard let email = input["email"]?.string, email.contains("@") else {
      throw Refused(400, "InvalidRequest", "Email is required")
    }
    let invite = input["inviteCode"]?.string
    try checkInvite(invite, call)
    if handle.hasSuffix(userDomain) {
      let label = handle.dropLast(userDomain.count)
      guard 3...18 ~= label.count, !label.contains(".") else {
        throw Refused(400, "InvalidHandle", "Handle too short or too long")
      }
      guard label != "admin" else { throw Refused(400, "HandleNotAvailable", "Reserved handle") }
    } else {
      let found = update { $0.textRecords[handle] ?? [] }
      guard let did, found.contains("did=\(did)") else {
        throw Refused(400, "InvalidRequest", "External handle did not resolve to DID")
      }
    }
    let holders = accounts.filter { $0.handle == handle || $0.email == email }
    if let holder = holders.first(where: { $0.status != .deactivated && $0.did != did }) {
      let what = holder.handle == handle ? "Handle" : "Email"
      throw Refused(400, "InvalidRequest", "\(what) already taken: \(handle)")
    }
    if let did, call.request.bearer == nil {
      throw Refused(
        401, "AuthenticationRequired", "Missing auth to create account with did: \(did)")
    }
    if let did, find(did) != nil || update({ $0.halfMade.contains(did) }) {
      throw Refused(400, "AlreadyExists", "Repo already exists")
    }
    guard holders.isEmpty else {
      throw Refused(500, "InternalServerError", "Internal Server Error")
    }
    try takeInvite(invite, call)
    let name = did ?? "new account \(handle)"
    let key = SigningKey(seed: "carpack stand-in server \(server.port): \(name)")
    let account: StandInAccount
    if let did {
      account = try StandInAccount(
        did: did, handle: handle, key: key, rotation: rotationKey,
        password: input["password"]?.string ?? "", email: email)
    } else {
      account = try StandInAccount(name, handle: handle)
      (account.password, account.email) = (input["password"]?.string ?? "", email)
      try directory.register(account, on: url)
    }
    add(account)
    update { $0.createdCount += 1 }
    try sendSession(account, isFull: true, call)
  }

  private func checkInvite(_ code: String?, _ call: Call) throws {
    guard let invites = call.behaviour.invites else { return }
    guard let code, invites.contains(code), update({ !$0.usedInvites.contains(code) }) else {
      throw Call.Refused(400, "InvalidInviteCode", "Provided invite code not available")
    }
  }

  private func takeInvite(_ code: String?, _ call: Call) throws {
    guard let invites = call.behaviour.invites else { return }
    let isGood = update { state in
      guard let code, invites.contains(code) else { return false }
      return state.usedInvites.insert(code).inserted
    }
    guard isGood else {
      throw Call.Refused(400, "InvalidInviteCode", "Provided invite code not available")
    }
  }

  /// Checks that a token vouches for an account, in the order in which the reference server does.
  private func checkServiceToken(_ call: Call, of did: String, _ directory: StandInDirectory) throws
  {
    func refuse(_ error: String, _ message: String) -> Call.Refused {
      Call.Refused(401, error, message)
    }
    guard let token = call.request.bearer else {
      throw refuse("AuthenticationRequired", "Missing auth to create account with did: \(did)")
    }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.json(parts[0]), let claims = Self.json(parts[1]),
      let signature = Self.decode(parts[2])
    else { throw Call.Refused(500, "InternalServerError", "Internal Server Error") }
    guard let expires = claims["exp"]?.integer, let issuer = claims["iss"]?.string else {
      throw refuse("BadJwt", "poorly formatted jwt")
    }
    guard issuer.hasPrefix("did:") else {
      throw Call.Refused(500, "InternalServerError", "Internal Server Error")
    }
    if let type = header["typ"]?.string, ["at+jwt", "refresh+jwt", "dpop+jwt"].contains(type) {
      throw refuse("BadJwtType", "Invalid jwt type")
    }
    guard Double(expires) > Self.now else { throw refuse("JwtExpired", "jwt expired") }
    guard claims["aud"]?.string == serviceDID else {
      throw refuse("BadJwtAudience", "jwt audience does not match service did")
    }
    if call.behaviour.requiresMethod,
      claims["lxm"]?.string != "com.atproto.server.createAccount"
    {
      throw refuse("BadJwtLexiconMethod", "bad jwt lexicon method (\"lxm\")")
    }
    guard issuer == did else {
      throw refuse("AuthenticationRequired", "Missing auth to create account with did: \(did)")
    }
    guard let operation = directory.current(did),
      let text = operation["verificationMethods"]?["atproto"]?.string,
      let key = try? VerificationKey(didKey: text)
    else { throw refuse("AuthenticationRequired", "could not resolve did: \(did)") }
    let signed = Array("\(parts[0]).\(parts[1])".utf8)
    guard header["alg"]?.string == (key.curve == .k256 ? "ES256K" : "ES256"),
      key.verifies(signature, of: signed.span)
    else { throw refuse("BadJwtSignature", "jwt signature does not match jwt issuer") }
  }

  static func json(_ part: Substring) -> IPLDValue? {
    decode(part).flatMap { try? DataModelJSON.decode($0) }
  }

  static func decode(_ part: Substring) -> [UInt8]? {
    var text = part.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
    while text.count % 4 != 0 { text.append("=") }
    return Data(base64Encoded: String(text)).map { [UInt8]($0) }
  }

  private func checkAccountStatus(_ owner: StandInAccount, _ call: Call) throws {
    let state = owner.snapshot()
    try call.send([
      "activated": .boolean(state.status == .active),
      "validDid": .boolean(whyInvalid(owner) == nil),
      "repoCommit": .string("\(owner.head)"), "repoRev": .string(owner.rev.text),
      "repoBlocks": .integer(Int128(state.blocks.count(where: \.value.isCurrent))),
      "indexedRecords": .integer(Int128(state.records.count)), "privateStateValues": .integer(0),
      "expectedBlobs": .integer(
        Int128(state.referencedBlobs(since: nil).union(state.ghosts).count)),
      "importedBlobs": .integer(Int128(state.rows.count)),
    ])
  }

  /// Why the directory does not let this server speak for an account; nil if it does.
  private func whyInvalid(_ owner: StandInAccount) -> String? {
    guard let operation = directory?.current(owner.did) else { return "DID not found" }
    let keys = (operation["rotationKeys"]?.array ?? []).compactMap(\.string)
    guard owner.did.hasPrefix("did:web:") || keys.contains("did:key:" + owner.rotation.multikey)
    else { return "Server rotation key not included in PLC DID data" }
    guard operation["services"]?["atproto_pds"]?["endpoint"]?.string == publicURL else {
      return "DID document atproto_pds service endpoint does not match PDS public url"
    }
    guard
      operation["verificationMethods"]?["atproto"]?.string == "did:key:" + owner.key.multikey
    else { return "DID document verification method does not match expected signing key" }
    return nil
  }

  private func activateAccount(_ owner: StandInAccount, _ call: Call) throws {
    if let why = whyInvalid(owner) { throw Call.Refused(400, "InvalidRequest", why) }
    owner.status = .active
    try call.response.send()
  }

  // MARK: Identity

  private func credentials(of owner: StandInAccount) -> IPLDMap {
    [
      "alsoKnownAs": .array([.string("at://" + owner.handle)]),
      "verificationMethods": .map(["atproto": .string("did:key:" + owner.key.multikey)]),
      "rotationKeys": .array([.string("did:key:" + owner.rotation.multikey)]),
      "services": .map([
        "atproto_pds": .map([
          "type": .string("AtprotoPersonalDataServer"), "endpoint": .string(publicURL),
        ])
      ]),
    ]
  }

  private func sendCode(_ owner: StandInAccount, _ call: Call) throws {
    guard !owner.email.isEmpty else {
      throw Call.Refused(400, "InvalidRequest", "account does not have an email address")
    }
    owner.change { state in
      state.mailCount += 1
      let digits = TID(integer: UInt64(state.mailCount) &* 0x9e37_79b9_7f4a_7c15 >> 1).text
      state.mailCode = "\(digits.dropFirst(3).prefix(5))-\(digits.suffix(5))".uppercased()
    }
    try call.response.send()
  }

  private func signOperation(_ owner: StandInAccount, _ input: IPLDMap, _ call: Call) throws {
    guard owner.did.hasPrefix("did:plc:") else { throw Call.Refused(404, "NotFound", "Not Found") }
    guard let token = input["token"]?.string else {
      throw Call.Refused(
        400, "InvalidRequest", "email confirmation token required to sign PLC operations")
    }
    let isGood = owner.change { state in
      guard state.mailCode == token.uppercased() else { return false }
      state.mailCode = nil
      return true
    }
    guard isGood else { throw Call.Refused(400, "InvalidToken", "Token is invalid") }
    guard var operation = directory?.current(owner.did)?.map,
      let last = directory?.operations(of: owner.did).last
    else { throw Call.Refused(400, "InvalidRequest", "Did is tombstoned") }
    for field in ["rotationKeys", "alsoKnownAs", "verificationMethods", "services"] {
      if let value = input[field] { operation[field] = value }
    }
    let bytes = try DAGCBOREncoder.encode(last)
    operation["prev"] = .string("\(CID(codec: .dagCBOR, hashing: bytes.span))")
    operation["sig"] = nil
    let signature = owner.rotation.sign(try DAGCBOREncoder.encode(.map(operation)))
    operation["sig"] = .string(Base64URL.encode(signature))
    try call.send(["operation": .map(operation)])
  }

  private func submitOperation(_ owner: StandInAccount, _ input: IPLDMap, _ call: Call) throws {
    func refuse(_ message: String) -> Call.Refused { Call.Refused(400, "InvalidRequest", message) }
    guard owner.did.hasPrefix("did:plc:"), let directory, let value = input["operation"],
      let operation = try? DirectoryRules.checkForm(value),
      operation["type"] == .string("plc_operation")
    else { throw refuse("Invalid operation") }
    let keys = DirectoryRules.keys(operation)
    guard keys.contains("did:key:" + owner.rotation.multikey) else {
      throw refuse("Rotation keys do not include server's rotation key")
    }
    let service = operation["services"]?["atproto_pds"]
    guard service?["type"]?.string == "AtprotoPersonalDataServer" else {
      throw refuse("Incorrect type on atproto_pds service")
    }
    guard service?["endpoint"]?.string == publicURL else {
      throw refuse("Incorrect endpoint on atproto_pds service")
    }
    guard operation["verificationMethods"]?["atproto"]?.string == "did:key:" + owner.key.multikey
    else { throw refuse("Incorrect signing key") }
    guard operation["alsoKnownAs"]?.array?.first?.string == "at://" + owner.handle else {
      throw refuse("Incorrect handle in alsoKnownAs")
    }
    let (status, _) = directory.take(value, for: owner.did)
    guard status == 200 else { throw refuse("Request failed with status code \(status)") }
    try call.response.send()
  }
}
