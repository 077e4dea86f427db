import ATProtocol
import IPLD
import StandIn

/// A PLC log that a test makes up, operation by operation, signed by whom it likes.
struct MadeLog {
  /// The keys that the operations name unless told otherwise: the first has the highest authority.
  static let rotation = ["first", "second", "third"].map {
    SigningKey(.k256, seed: "rotation \($0)")
  }
  /// Keys that sign repositories.
  static let signing = [
    SigningKey(.k256, seed: "signing one"), SigningKey(.p256, seed: "signing two"),
    SigningKey(.k256, seed: "signing three"),
  ]
  /// 2024-01-01T00:00:00Z.
  static let start: Int64 = 1_704_067_200_000_000
  static let hour: Int64 = 3_600_000_000

  private(set) var entries: [IPLDMap] = []

  /// An operation that is not signed yet.
  static func operation(
    signing: SigningKey? = signing[0], rotation: [SigningKey] = rotation, handle: String = "a.test",
    pds: String = "https://one.example"
  ) -> IPLDMap {
    var methods: IPLDMap = [:]
    methods["atproto"] = signing.map { .string("did:key:" + $0.multikey) }
    return [
      "type": .string("plc_operation"),
      "rotationKeys": .array(rotation.map { .string("did:key:" + $0.multikey) }),
      "verificationMethods": .map(methods), "alsoKnownAs": .array([.string("at://" + handle)]),
      "services": .map([
        "atproto_pds": .map([
          "type": .string("AtprotoPersonalDataServer"), "endpoint": .string(pds),
        ])
      ]),
    ]
  }

  static let tombstone: IPLDMap = ["type": .string("plc_tombstone")]

  static let legacy: IPLDMap = [
    "type": .string("create"), "handle": .string("old.test"), "service": .string("one.example"),
    "signingKey": .string("did:key:" + rotation[1].multikey),
    "recoveryKey": .string("did:key:" + rotation[0].multikey),
  ]

  /// Appends an operation, signed, this many hours after the start.
  ///
  /// - Parameters:
  ///   - previous: the number of the operation that it follows; the last one if nil.
  ///   - change: what is done to the operation after it was signed.
  mutating func append(
    _ operation: IPLDMap, by key: SigningKey = rotation[1], after previous: Int? = nil,
    hours: Double, nullified: Bool = false, highS: Bool = false,
    change: (inout IPLDMap) -> Void = { _ in }
  ) throws {
    var operation = operation
    let last = entries.isEmpty ? nil : previous ?? entries.count - 1
    operation["prev"] = last.flatMap { entries[$0]["cid"] } ?? .null
    let signature = key.sign(try DAGCBOREncoder.encode(.map(operation)), highS: highS)
    operation["sig"] = .string(Self.base64URL(signature))
    change(&operation)
    try add(operation, hours: hours, nullified: nullified)
  }

  /// Appends a signed operation as it stands.
  mutating func add(_ operation: IPLDMap, hours: Double, nullified: Bool = false) throws {
    let bytes = try DAGCBOREncoder.encode(.map(operation))
    let digest = SHA256.digest(of: bytes.span).bytes
    let did = entries.first?["did"] ?? .string("did:plc:" + Base32.encode(digest.span).prefix(24))
    entries.append([
      "did": did, "operation": .map(operation), "nullified": .boolean(nullified),
      "cid": .string("\(CID(codec: .dagCBOR, hashing: bytes.span))"),
      "createdAt": .string(Self.time(hours: hours).description),
    ])
  }

  /// Changes what the directory says of an operation.
  mutating func change(_ number: Int, _ field: String, to value: IPLDValue?) {
    entries[number][field] = value
  }

  static func time(hours: Double) -> UnixTime {
    UnixTime(microseconds: start + Int64(hours * Double(hour)))
  }

  /// The account.
  var did: DID {
    get throws { try DID(entries.first?["did"]?.string ?? "did:plc:none") }
  }

  /// The CID of an operation.
  func cid(_ number: Int) throws -> CID { try CID(entries[number]["cid"]?.string ?? "") }

  /// The log, read.
  func log() throws -> PLCLog {
    let json = Array(IPLDValue.array(entries.map { .map($0) }).json().utf8)
    return try PLCLog(json.span, of: did)
  }

  /// The log, checked.
  func history() throws -> PLCHistory { try PLCHistory(validating: log(), of: did) }

  static func base64URL(_ bytes: [UInt8]) -> String {
    String(Base64.encode(bytes).map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
  }
}
