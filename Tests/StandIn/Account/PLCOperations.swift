import ATProtocol
import IPLD

/// The operations of a `did:plc`, and the log that a directory gives of them.
///
/// Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc).
struct PLCOperations: Sendable {
  var rotation: SigningKey
  /// What the account is according to the last operation.
  private(set) var now: Claims
  private var entries: [IPLDValue] = []
  private var last: CID?
  private(set) var did = ""

  /// The operation with which the DID begins.
  init(name: String, handle: String, key: SigningKey) throws {
    rotation = SigningKey(seed: "carpack stand-in: \(name), rotation")
    now = Claims(handle: handle, server: "https://pds.example.com", key: "did:key:" + key.multikey)
    try append(now, at: "2025-06-15T12:00:00.000Z")
  }

  /// The operations of a log that was made elsewhere and is continued here.
  init(log: String, rotation: SigningKey) throws {
    self.rotation = rotation
    entries = try DataModelJSON.decode(Array(log.utf8)).array ?? []
    guard let end = entries.last, let operation = end["operation"], let did = end["did"]?.string,
      let cid = end["cid"]?.string
    else { throw StandInAccount.Malformed(what: "the PLC log has no operation") }
    self.did = did
    last = try CID(cid)
    now = Claims(
      handle: String(
        (operation["alsoKnownAs"]?.array?.first?.string ?? "").dropFirst("at://".count)),
      server: operation["services"]?["atproto_pds"]?["endpoint"]?.string ?? "",
      key: operation["verificationMethods"]?["atproto"]?.string ?? "")
  }

  /// What an operation says of an account.
  struct Claims: Equatable, Sendable {
    var handle: String
    var server: String
    var key: String
  }

  /// The log, as JSON.
  var auditLog: String { IPLDValue.array(entries).json() }

  /// Says what an account is from a time on; without one, from a second after the last operation
  /// on.
  mutating func append(_ claims: Claims, at given: String? = nil) throws {
    let time = given ?? later()
    var operation: IPLDMap = [
      "type": .string("plc_operation"), "prev": last.map { .string("\($0)") } ?? .null,
      "rotationKeys": .array([.string("did:key:" + rotation.multikey)]),
      "verificationMethods": .map(["atproto": .string(claims.key)]),
      "alsoKnownAs": .array([.string("at://" + claims.handle)]),
      "services": .map([
        "atproto_pds": .map([
          "type": .string("AtprotoPersonalDataServer"),
          "endpoint": .string(claims.server),
        ])
      ]),
    ]
    try append(&operation, at: time)
    now = claims
  }

  /// The same with a tombstone at the end.
  func tombstoned() throws -> PLCOperations {
    var ended = self
    var operation: IPLDMap = [
      "type": .string("plc_tombstone"), "prev": last.map { .string("\($0)") } ?? .null,
    ]
    try ended.append(&operation, at: later())
    return ended
  }

  private mutating func append(_ operation: inout IPLDMap, at time: String) throws {
    let signature = rotation.sign(try DAGCBOREncoder.encode(.map(operation)))
    operation["sig"] = .string(Base64URL.encode(signature))
    let bytes = try DAGCBOREncoder.encode(.map(operation))
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    if last == nil {
      did = "did:plc:" + Base32.encode(SHA256.digest(of: bytes.span).bytes.span).prefix(24)
    }
    last = cid
    entries.append(
      .map([
        "did": .string(did), "operation": .map(operation), "cid": .string("\(cid)"),
        "nullified": .boolean(false), "createdAt": .string(time),
      ]))
  }
}

extension PLCOperations {
  /// A second after the last operation.
  private func later() -> String {
    let last = entries.last?["createdAt"]?.string.flatMap { UnixTime($0) }
    return "\(UnixTime(microseconds: (last?.microseconds ?? 0) + 1_000_000))"
  }
}

/// Base 64 for URLs, without padding: RFC 4648, section 5.
enum Base64URL {
  static func encode(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    var (held, bits): (UInt32, UInt32) = (0, 0)
    for byte in bytes {
      held = held << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[Int(held >> bits & 63)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(held << (6 - bits) & 63)]) }
    return String(decoding: text, as: UTF8.self)
  }
}
