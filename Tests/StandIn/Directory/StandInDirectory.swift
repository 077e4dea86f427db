import ATProtocol
import Foundation
package import IPLD
import Synchronization

/// A directory of `did:plc` on loopback that takes operations as the real one was seen to: what it
/// refuses, and with which status, what it lets pass that it should not, and where it fails.
///
/// Its rules are its own, and not those that the project checks logs by.
package final class StandInDirectory: Sendable {
  /// An operation that was taken.
  struct Entry: Sendable {
    var operation: IPLDMap
    var cid: CID
    var isNullified = false
    /// In seconds since 1970.
    var createdAt: Double
  }

  struct State {
    var logs: [String: [Entry]] = [:]
    /// How many seconds its clock is ahead.
    var ahead = 0.0
    var mishaps: [Mishap] = []
    var postCount = 0
    /// What documents of did:web say, as operations would.
    var webStates: [String: IPLDValue] = [:]
  }

  /// What happens to the answer to an operation.
  package enum Mishap: String, Sendable, CaseIterable {
    /// It is refused with status 500, and not taken.
    case fails
    /// It is accepted, and answered with status 500.
    case failsAfterTaking = "fails-after-taking"
    /// It is taken, and the connection ends.
    case dropsAfterTaking = "drops-after-taking"
  }

  /// Writes a date as HTTP does.
  private static let dateField: DateFormatter = {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter
  }()

  private let state = Mutex(State())
  private let running = Mutex<LoopbackServer?>(nil)

  /// Starts a directory.
  package init(port: UInt16 = 0) throws {
    let server = try LoopbackServer(port: port) { [weak self] in try self?.answer($0, $1) }
    running.withLock { $0 = server }
  }

  /// What it runs on, and its log.
  package var server: LoopbackServer { running.withLock { $0! } }
  /// Its address, without a slash at the end.
  package var url: String { server.url }
  /// Stops it.
  package func stop() { server.stop() }

  /// Advances its clock.
  package func advance(seconds: Double) { state.withLock { $0.ahead += seconds } }

  /// Has something happen to the next answers to operations.
  package func play(_ mishaps: Mishap...) { state.withLock { $0.mishaps += mishaps } }

  /// How many operations were sent to it.
  package var postCount: Int { state.withLock { $0.postCount } }

  /// Takes up an account with its log, whose last operation is made to name a server.
  package func register(_ account: StandInAccount, on server: String) throws {
    let log = try account.auditLog(on: server)
    let items = try DataModelJSON.decode(Array(log.utf8)).array ?? []
    let entries = try items.map { item -> Entry in
      guard let operation = item["operation"]?.map, let cid = item["cid"]?.string,
        let time = item["createdAt"]?.string.flatMap({ UnixTime($0) })
      else { throw StandInAccount.Malformed(what: "an entry of the log") }
      return Entry(
        operation: operation, cid: try CID(cid),
        createdAt: Double(time.microseconds) / 1_000_000)
    }
    state.withLock { $0.logs[account.did] = entries }
  }

  /// Has a server's rotation key add another in front, as an owner would have it done in good time.
  package func addRotationKey(_ key: String, of did: String, signedBy signer: SigningKey) throws {
    var operation = state.withLock { $0.standing(did).last?.operation } ?? [:]
    operation["rotationKeys"] = .array(
      [.string(key)] + (operation["rotationKeys"]?.array ?? []))
    try append(operation, for: did, signedBy: signer)
  }

  /// Takes an operation that says this and follows the last one, signed with a key.
  package func append(_ content: IPLDMap, for did: String, signedBy signer: SigningKey) throws {
    var operation = content
    let last = state.withLock { $0.standing(did).last?.cid }
    operation["prev"] = last.map { .string("\($0)") } ?? .null
    operation["sig"] = nil
    let signature = signer.sign(try DAGCBOREncoder.encode(.map(operation)))
    operation["sig"] = .string(Base64URL.encode(signature))
    let (status, text) = take(IPLDValue.map(operation), for: did)
    guard status == 200 else { throw StandInAccount.Malformed(what: text) }
  }

  /// The operations that hold, the oldest first.
  package func operations(of did: String) -> [IPLDValue] {
    state.withLock { $0.standing(did).map { .map($0.operation) } }
  }

  /// The operation that holds now; nil for an unknown DID, or one that was ended.
  package func current(_ did: String) -> IPLDValue? {
    if did.hasPrefix("did:web:") { return state.withLock { $0.webStates[did] } }
    guard let last = operations(of: did).last, last["type"] == .string("plc_operation") else {
      return nil
    }
    return last
  }

  /// What the document of a did:web says from now on: the key that signs, and the server.
  package func setWeb(_ did: String, key: String, server: String) {
    let operation: IPLDMap = [
      "verificationMethods": .map(["atproto": .string(key)]),
      "services": .map(["atproto_pds": .map(["endpoint": .string(server)])]),
    ]
    state.withLock { $0.webStates[did] = .map(operation) }
  }

  /// Whether there is, or was, such a DID.
  package func knows(_ did: String) -> Bool { state.withLock { $0.logs[did] != nil } }

  /// Takes an operation, or refuses it.
  package func take(_ operation: IPLDValue, for did: String) -> (status: Int, message: String) {
    state.withLock { state in
      do {
        try state.take(operation, for: did, now: Date().timeIntervalSince1970 + state.ahead)
        return (200, "OK")
      } catch let refusal as DirectoryRules.Refusal {
        return (refusal.status, refusal.message)
      } catch {
        return (500, "Internal Server Error")
      }
    }
  }

  // MARK: Answering

  private func answer(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let now = Date(timeIntervalSinceNow: state.withLock { $0.ahead })
    response.fields.append(("Date", Self.dateField.string(from: now)))
    let parts = request.path.dropFirst().split(separator: "/", maxSplits: 1)
    guard let did = parts.first.map(String.init), did.hasPrefix("did:") else {
      if request.path.hasPrefix("/control/") { return try control(request, response) }
      return try refuse(404, "Not Found", response)
    }
    if request.method == "POST" { return try post(did, request, response) }
    let (entries, isKnown) = state.withLock { ($0.logs[did] ?? [], $0.logs[did] != nil) }
    guard isKnown else { return try refuse(404, "DID not registered: \(did)", response) }
    let standing = entries.filter { !$0.isNullified }
    let isEnded = standing.last?.operation["type"] == .string("plc_tombstone")
    func send(_ value: IPLDValue, _ type: String = "application/json; charset=utf-8") throws {
      try response.send(value.json(), type: type)
    }
    switch parts.count > 1 ? parts[1] : "" {
    case "", "data":
      guard !isEnded, let state = standing.last else {
        return try refuse(404, "DID not available: \(did)", response)
      }
      if parts.count > 1 {
        var data = state.operation
        for key in ["type", "prev", "sig"] { data[key] = nil }
        data["did"] = .string(did)
        try send(.map(data))
      } else {
        try send(Self.document(did, state.operation), "application/did+ld+json; charset=utf-8")
      }
    case "log": try send(.array(standing.map { .map($0.operation) }))
    case "log/last": try send(standing.last.map { .map($0.operation) } ?? .null)
    case "log/audit":
      try send(
        .array(
          entries.map { entry in
            let item: IPLDMap = [
              "did": .string(did), "operation": .map(entry.operation),
              "cid": .string("\(entry.cid)"), "nullified": .boolean(entry.isNullified),
              "createdAt": .string(Self.timestamp(entry.createdAt)),
            ]
            return .map(item)
          }))
    default: try refuse(404, "Not Found", response)
    }
  }

  /// A time as the directory writes it, to the millisecond.
  private static func timestamp(_ seconds: Double) -> String {
    let milliseconds = Int64((seconds * 1000).rounded(.down))
    let whole = "\(UnixTime(microseconds: milliseconds * 1000))".dropLast()
    return whole + String(format: ".%03dZ", Int(milliseconds % 1000))
  }

  private func post(_ did: String, _ request: LoopbackRequest, _ response: LoopbackResponse) throws
  {
    let mishap = state.withLock { state -> Mishap? in
      state.postCount += 1
      return state.mishaps.isEmpty ? nil : state.mishaps.removeFirst()
    }
    if mishap == .fails { return try refuse(500, "Internal Server Error", response) }
    guard request["content-type"]?.hasPrefix("application/json") == true else {
      return try refuse(400, "Not a valid operation", response)
    }
    guard request.body.count <= 100 << 10, let operation = try? DataModelJSON.decode(request.body)
    else { return try refuse(500, "Internal Server Error", response) }
    let (status, message) = take(operation, for: did)
    switch mishap {
    case .failsAfterTaking: return try refuse(500, "Internal Server Error", response)
    case .dropsAfterTaking: return response.close()
    default: break
    }
    guard status == 200 else { return try refuse(status, message, response) }
    try response.send("OK", type: "text/plain; charset=utf-8")
  }

  /// `/control/advance?seconds=`, `/control/play?mishap=`, `/control/posts`.
  private func control(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    switch request.path.dropFirst("/control/".count) {
    case "advance": advance(seconds: request.parameter("seconds").flatMap { Double($0) } ?? 0)
    case "play":
      guard let mishap = request.parameter("mishap").flatMap(Mishap.init) else {
        return try refuse(400, "which mishap?", response)
      }
      play(mishap)
    case "posts": return try response.send("\(postCount)\n")
    default: return try refuse(404, "no such control", response)
    }
    try response.send("{}", type: "application/json")
  }

  private func refuse(_ status: Int, _ message: String, _ response: LoopbackResponse) throws {
    response.status = status
    let body: IPLDMap = ["message": .string(message)]
    try response.send(IPLDValue.map(body).json(), type: "application/json; charset=utf-8")
  }

  private static func document(_ did: String, _ operation: IPLDMap) -> IPLDValue {
    var methods: [IPLDValue] = []
    for entry in operation["verificationMethods"]?.map?.entries ?? [] {
      let key = entry.value.string ?? ""
      let method: IPLDMap = [
        "id": .string("\(did)#\(entry.key)"), "type": .string("Multikey"),
        "controller": .string(did),
        "publicKeyMultibase": .string(String(key.dropFirst("did:key:".count))),
      ]
      methods.append(.map(method))
    }
    var services: [IPLDValue] = []
    for entry in operation["services"]?.map?.entries ?? [] {
      let service: IPLDMap = [
        "id": .string("#\(entry.key)"), "type": entry.value["type"] ?? .null,
        "serviceEndpoint": entry.value["endpoint"] ?? .null,
      ]
      services.append(.map(service))
    }
    let document: IPLDMap = [
      "@context": .array([
        .string("https://www.w3.org/ns/did/v1"),
        .string("https://w3id.org/security/multikey/v1"),
        .string("https://w3id.org/security/suites/secp256k1-2019/v1"),
      ]),
      "id": .string(did), "alsoKnownAs": operation["alsoKnownAs"] ?? .array([]),
      "verificationMethod": .array(methods), "service": .array(services),
    ]
    return .map(document)
  }
}

extension StandInDirectory.State {
  func standing(_ did: String) -> [StandInDirectory.Entry] {
    (logs[did] ?? []).filter { !$0.isNullified }
  }
}
