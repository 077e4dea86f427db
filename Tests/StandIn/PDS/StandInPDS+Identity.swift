import ATProtocol
import IPLD

/// What is said about accounts beside their repositories: by the server, the DID directory, the
/// handles' hosts and the DNS.
extension StandInPDS {
  func describeRepo(_ call: Call) throws {
    let account = try account(call, parameter: "repo")
    var collections: Set<String> = []
    for path in account.paths { collections.insert(String(path.prefix { $0 != "/" })) }
    try call.send([
      "handle": .string(account.handle), "did": .string(account.did),
      "didDoc": document(of: account),
      "collections": .array(collections.sorted().map { .string($0) }),
      "handleIsCorrect": .boolean(true),
    ])
  }

  func resolveHandle(_ call: Call) throws {
    guard let handle = call.request.parameter("handle") else {
      return try call.refuse(
        400, "InvalidRequest", "Error: Params must have the property \"handle\"")
    }
    if let account = accounts.first(where: { $0.handle == handle }) {
      guard account.status != .deactivated || call.behaviour.resolvesDeactivated else {
        return try call.refuse(400, "InvalidRequest", "Unable to resolve handle")
      }
      return try call.send(["did": .string(account.did)])
    }
    for text in update({ $0.textRecords[handle] ?? [] }) where text.hasPrefix("did=") {
      return try call.send(["did": .string(String(text.dropFirst("did=".count)))])
    }
    if call.behaviour.resolvesHandles {
      try call.refuse(400, "HandleNotFound", "Unable to resolve handle")
    } else {
      try call.refuse(401, "AuthenticationRequired", "Authentication Required")
    }
  }

  func describeServer(_ call: Call) throws {
    var answer: IPLDMap = [
      "did": .string(serviceDID), "availableUserDomains": .array([.string(userDomain)]),
      "inviteCodeRequired": .boolean(call.behaviour.invites != nil), "links": .map([:]),
      "contact": .map([:]),
    ]
    if call.behaviour.saysBlobLimit {
      answer["blobUploadLimit"] = .integer(Int128(call.behaviour.blobLimit))
    }
    try call.send(answer)
  }

  /// Answers what is not XRPC.
  func answerIdentity(_ call: Call) throws {
    let path = call.request.path
    if path.hasPrefix("/did:") { return try answerDirectory(String(path.dropFirst()), call) }
    switch path {
    case "/.well-known/atproto-did":
      let host = host(call)
      let handle = host.prefix { $0 != ":" }
      let content = update { state in
        state.wellKnown[String(handle)]
          ?? state.accounts.values.first { $0.handle == handle }?.did
      }
      guard let content else { return try notFound(call) }
      try call.response.send(content, type: "text/plain")
    case "/.well-known/did.json":
      let did = "did:web:" + host(call).split(separator: ":").joined(separator: "%3A")
      try answerDirectory(did, call)
    case "/dns-query", "/resolve", "/": try answerDNS(call)
    default: try notFound(call)
    }
  }

  /// What a DID directory says: the document, the state that it follows from, or the log.
  private func answerDirectory(_ path: String, _ call: Call) throws {
    let parts = path.split(separator: "/", maxSplits: 1)
    let did = String(parts[0])
    let (given, givenLog) = update { ($0.documents[did], $0.auditLogs[did]) }
    let account = find(did)
    guard given != nil || account != nil else {
      call.response.status = 404
      return try call.send(["message": .string("DID not registered: \(did)")])
    }
    if account?.status == .deleted, givenLog == nil || parts.count < 2 {
      call.response.status = 404
      return try call.send(["message": .string("DID not available: \(did)")])
    }
    switch parts.count > 1 ? parts[1] : "" {
    case "":
      let text = given ?? account.map { document(of: $0).json() } ?? "{}"
      try call.response.send(text, type: "application/did+ld+json; charset=utf-8")
    case "log/audit":
      let log = try givenLog ?? account?.auditLog(on: url) ?? "[]"
      try call.response.send(log, type: "application/json; charset=utf-8")
    default: try notFound(call)
    }
  }

  /// DNS over HTTPS in JSON: texts of `_atproto.HANDLE`.
  private func answerDNS(_ call: Call) throws {
    let name = call.request.parameter("name") ?? ""
    let handle = name.hasPrefix("_atproto.") ? String(name.dropFirst("_atproto.".count)) : ""
    let isText = ["TXT", "16"].contains(call.request.parameter("type") ?? "")
    let texts = update { state in
      state.textRecords[handle]
        ?? state.accounts.values.first { $0.handle == handle }.map { ["did=\($0.did)"] } ?? []
    }
    let answers = isText ? texts : []
    let items = answers.map { text -> IPLDValue in
      .map([
        "name": .string(name + "."), "type": .integer(16), "TTL": .integer(300),
        "data": .string("\"\(text)\""),
      ])
    }
    let question: IPLDMap = ["name": .string(name + "."), "type": .integer(16)]
    var answer: IPLDMap = [
      // 3 is NXDOMAIN.
      "Status": .integer(texts.isEmpty ? 3 : 0), "TC": .boolean(false), "RD": .boolean(true),
      "RA": .boolean(true), "AD": .boolean(false), "CD": .boolean(false),
      "Question": .array([.map(question)]),
    ]
    if !items.isEmpty { answer["Answer"] = .array(items) }
    try call.response.send(IPLDValue.map(answer).json(), type: "application/dns-json")
  }

  /// The DID document of an account, which names this server.
  func document(of account: StandInAccount) -> IPLDValue {
    var map = account.documentTemplate?.map ?? [:]
    if account.documentTemplate == nil {
      let isLegacy = account.style.hasLegacyDocument
      let legacyType =
        account.style.curve == .k256
        ? "EcdsaSecp256k1VerificationKey2019" : "EcdsaSecp256r1VerificationKey2019"
      map = [
        "@context": .array([
          .string("https://www.w3.org/ns/did/v1"),
          .string("https://w3id.org/security/multikey/v1"),
        ]),
        "id": .string(account.did),
        "verificationMethod": .array([
          .map([
            "id": .string(isLegacy ? "#atproto" : account.did + "#atproto"),
            "type": .string(isLegacy ? legacyType : "Multikey"),
            "controller": .string(account.did),
            "publicKeyMultibase": .string(
              isLegacy ? account.key.legacyMultibase : account.key.multikey),
          ])
        ]),
      ]
    }
    map["alsoKnownAs"] = .array([.string("at://" + account.handle)])
    map["service"] = .array([
      .map([
        "id": .string("#atproto_pds"), "type": .string("AtprotoPersonalDataServer"),
        "serviceEndpoint": .string(account.endpoint ?? url),
      ])
    ])
    return .map(map)
  }

  private func host(_ call: Call) -> String { (call.request["host"] ?? "").lowercased() }

  private func notFound(_ call: Call) throws {
    call.response.status = 404
    try call.response.send("Not Found\n")
  }
}
