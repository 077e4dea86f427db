import ATProtocol
import IPLD

/// The operations of a `did:plc`, and the log that a directory gives of them.
///
/// Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc).
struct PLCOperations: Sendable {
  private let rotation: SigningKey
  private let handle: String
  private var entries: [IPLDValue] = []
  private var last: CID?
  private(set) var did = ""

  /// The operation with which the DID begins.
  init(name: String, handle: String, key: SigningKey) throws {
    rotation = SigningKey(seed: "carpack stand-in: \(name), rotation")
    self.handle = handle
    try append(key, at: "2025-06-15T12:00:00.000Z")
  }

  /// The log, as JSON.
  var auditLog: String { IPLDValue.array(entries).json() }

  /// Names a key that signs the repository from a time on.
  mutating func append(_ key: SigningKey, at time: String) throws {
    var operation: IPLDMap = [
      "type": .string("plc_operation"), "prev": last.map { .string("\($0)") } ?? .null,
      "rotationKeys": .array([.string("did:key:" + rotation.multikey)]),
      "verificationMethods": .map(["atproto": .string("did:key:" + key.multikey)]),
      "alsoKnownAs": .array([.string("at://" + handle)]),
      "services": .map([
        "atproto_pds": .map([
          "type": .string("AtprotoPersonalDataServer"),
          "endpoint": .string("https://pds.example.com"),
        ])
      ]),
    ]
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
