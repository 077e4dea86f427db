import ATProtocol
import IPLD

/// What a test changes while the server runs: `/control/…`, with parameters in the query.
///
/// | path | does |
/// |---|---|
/// | `accounts` | lists them |
/// | `counts` | how often each blob was asked for, and how often a client got all of it |
/// | `requests` | the log, a JSON object a line |
/// | `forget` | begins the log anew |
/// | `advance?did=` | goes on to the next revision, of one account or all |
/// | `status?did=&status=` | deactivates an account, and the like |
/// | `lose?did=&cid=` | loses a blob |
/// | `mail?did=` | the code that was sent by mail last |
/// | `behaviour?name=` | behaves as a server does, keeping latency and limit |
/// | `set?latency=&rate-limit=N/SECONDS` | how slow it is, in milliseconds, and its limit |
/// | `fault?kind=&endpoint=&cid=&did=&times=` | has a fault befall answers |
/// | `random?rate=&kinds=A,B&seed=&endpoint=` | has faults at random |
/// | `clear` | has no more faults |
extension StandInPDS {
  func answerControl(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let call = Call(request: request, response: response, behaviour: Behaviour(), fault: nil)
    let chosen = request.parameter("did").map { name in find(name).map { [$0] } ?? [] } ?? accounts
    switch request.path.dropFirst("/control/".count) {
    case "accounts": try call.send(["accounts": .array(accounts.map { describe($0) })])
    case "counts":
      try call.send([
        "requests": .map(Self.map(blobRequests)), "deliveries": .map(Self.map(blobDeliveries)),
      ])
    case "requests":
      var lines = ""
      for exchange in server.log { lines += exchange.json + "\n" }
      try response.send(lines, type: "application/jsonl")
    case "forget":
      server.forgetLog()
      try call.send([:])
    case "advance":
      for account in chosen { try account.advance() }
      try call.send(["accounts": .array(chosen.map { describe($0) })])
    case "status":
      guard let status = request.parameter("status").flatMap(StandInAccount.Status.init) else {
        return try call.refuse(400, "InvalidRequest", "which status?")
      }
      for account in chosen { account.status = status }
      try call.send(["accounts": .array(chosen.map { describe($0) })])
    case "lose":
      guard let cid = request.parameter("cid").flatMap({ try? CID($0) }) else {
        return try call.refuse(400, "InvalidRequest", "which blob?")
      }
      for account in chosen { account.lose(cid) }
      try call.send([:])
    case "mail": try response.send((chosen.first?.mailCode ?? "") + "\n")
    case "behaviour":
      let name = request.parameter("name")
      guard var next = Behaviour.observed.first(where: { $0.name == name })?.behaviour else {
        return try call.refuse(400, "InvalidRequest", "which behaviour?")
      }
      next.latency = behaviour.latency
      next.rateLimit = behaviour.rateLimit
      behaviour = next
      try call.send([:])
    case "set":
      if let latency = request.parameter("latency").flatMap({ Double($0) }) {
        behaviour.latency = latency / 1000
      }
      if let limit = request.parameter("rate-limit") {
        behaviour.rateLimit = Behaviour.RateLimit(limit)
      }
      try call.send([:])
    case "fault":
      guard let fault = request.parameter("kind").flatMap({ Fault(name: $0) }) else {
        return try call.refuse(400, "InvalidRequest", "which fault?")
      }
      play(
        FaultRule(
          fault, on: request.parameter("endpoint"), cid: request.parameter("cid"),
          did: request.parameter("did"), times: request.parameter("times").flatMap { Int($0) }))
      try call.send([:])
    case "random":
      var faults = RandomFaults(
        rate: request.parameter("rate").flatMap { Double($0) } ?? 0,
        seed: request.parameter("seed").flatMap { UInt64($0) } ?? 1,
        endpoint: request.parameter("endpoint"))
      if let kinds = request.parameter("kinds") {
        faults.kinds = kinds.split(separator: ",").compactMap { Fault(name: String($0)) }
      }
      randomFaults = faults
      try call.send([:])
    case "clear":
      clearFaults()
      try call.send([:])
    default: try call.refuse(404, "NotFound", "no such control")
    }
  }

  private func describe(_ account: StandInAccount) -> IPLDValue {
    .map([
      "did": .string(account.did), "handle": .string(account.handle),
      "rev": .string(account.rev.text), "head": .string("\(account.head)"),
      "status": .string(account.status.rawValue), "records": .integer(Int128(account.paths.count)),
      "blobs": .integer(Int128(account.referencedBlobs.count)),
      "held": .integer(Int128(account.blobs.count)),
    ])
  }

  private static func map(_ counts: [String: Int]) -> IPLDMap {
    var map: IPLDMap = [:]
    for (name, count) in counts { map[name] = .integer(Int128(count)) }
    return map
  }
}

extension Behaviour.RateLimit {
  /// A limit as it is typed, `REQUESTS/SECONDS`; nil if it is not one.
  package init?(_ text: String) {
    let parts = text.split(separator: "/")
    guard parts.count == 2, let requests = Int(parts[0]), let seconds = Double(parts[1]),
      requests > 0, seconds > 0
    else { return nil }
    self.init(requests: requests, seconds: seconds)
  }
}

extension LoopbackExchange {
  /// A line of a log: an object in JSON.
  package var json: String {
    var query: IPLDMap = [:]
    for parameter in self.query { query[parameter.name] = .string(parameter.value) }
    var line: IPLDMap = [
      "number": .integer(Int128(number)), "method": .string(method), "path": .string(path),
      "query": .map(query), "connection": .integer(Int128(connection)),
      "arrived": .float(arrived), "bytes": .integer(Int128(bytesSent)),
      "whole": .boolean(isWhole), "status": status.map { .integer(Int128($0)) } ?? .null,
      "ended": ended.map { .float($0) } ?? .null, "read": wasRead.map { .boolean($0) } ?? .null,
      "delivered": .boolean(isDelivered),
    ]
    if let fault { line["fault"] = .string(fault) }
    for name in ["user-agent", "range", "accept-encoding", "host"] {
      if let value = self[name] { line[name] = .string(value) }
    }
    if self["authorization"] != nil { line["authorized"] = .boolean(true) }
    return IPLDValue.map(line).json()
  }
}
