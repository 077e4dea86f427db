import ATProtocol
import IPLD

/// The operation with which a `did:plc` begins, and the log that a directory gives of it.
///
/// Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc).
struct GenesisOperation {
  let did: String
  /// The log of this one operation, as JSON.
  let auditLog: String

  init(name: String, handle: String, key: SigningKey) throws {
    let rotation = SigningKey(seed: "carpack stand-in: \(name), rotation")
    var operation: IPLDMap = [
      "type": .string("plc_operation"), "prev": .null,
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
    let digest = SHA256.digest(of: bytes.span).bytes
    did = "did:plc:" + Base32.encode(digest.span).prefix(24)
    let entry: IPLDMap = [
      "did": .string(did), "operation": .map(operation),
      "cid": .string("\(CID(codec: .dagCBOR, hashing: bytes.span))"), "nullified": .boolean(false),
      "createdAt": .string("2025-06-15T12:00:00.000Z"),
    ]
    auditLog = IPLDValue.array([.map(entry)]).json()
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
