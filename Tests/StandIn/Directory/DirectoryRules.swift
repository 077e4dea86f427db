import ATProtocol
import IPLD

/// What a directory of `did:plc` takes and what it refuses, as the real one was seen to.
enum DirectoryRules {
  struct Refusal: Error {
    let status: Int
    let message: String

    init(_ status: Int, _ message: String) {
      self.status = status
      self.message = message
    }
  }

  static let maximumLength = 4000
  static let recoverySeconds = 72.0 * 3600

  static let fields: [String: Set<String>] = [
    "plc_operation": [
      "type", "rotationKeys", "verificationMethods", "alsoKnownAs", "services", "prev", "sig",
    ],
    "plc_tombstone": ["type", "prev", "sig"],
  ]

  /// Refuses what is not an operation by its form.
  static func checkForm(_ value: IPLDValue) throws -> IPLDMap {
    guard let map = value.map, let type = map["type"]?.string, let wanted = fields[type],
      Set(map.keys) == wanted, map["sig"]?.string != nil
    else { throw Refusal(400, "Not a valid operation") }
    guard map["prev"] == .null || map["prev"]?.string != nil else {
      throw Refusal(400, "Not a valid operation")
    }
    guard try DAGCBOREncoder.encode(.map(map)).count <= maximumLength else {
      throw Refusal(400, "Operation too large")
    }
    guard type == "plc_operation" else { return map }
    func texts(_ value: IPLDValue?) throws -> [String] {
      guard let items = value?.array, items.allSatisfy({ $0.string != nil }) else {
        throw Refusal(400, "Not a valid operation")
      }
      guard items.count <= 10 else { throw Refusal(400, "To many entries") }
      return items.compactMap(\.string)
    }
    let rotation = try texts(map["rotationKeys"])
    for key in rotation {
      guard (try? VerificationKey(didKey: key)) != nil else {
        throw Refusal(400, "Invalid rotationKey: \(key)")
      }
    }
    let names = try texts(map["alsoKnownAs"])
    guard names.allSatisfy({ $0.utf8.count <= 258 }) else {
      throw Refusal(400, "Alias too long")
    }
    guard Set(names).count == names.count else { throw Refusal(400, "Alias listed twice") }
    guard let methods = map["verificationMethods"]?.map, let services = map["services"]?.map,
      methods.keys.count <= 10, services.keys.count <= 10
    else { throw Refusal(400, "Not a valid operation") }
    for entry in methods.entries {
      guard entry.key.utf8.count <= 32, let key = entry.value.string, key.utf8.count <= 256,
        key.hasPrefix("did:key:z")
      else { throw Refusal(400, "Invalid verificationMethod key") }
    }
    for entry in services.entries {
      guard entry.key.utf8.count <= 32, entry.value.map?.keys.sorted() == ["endpoint", "type"],
        let type = entry.value["type"]?.string, type.utf8.count <= 256,
        let endpoint = entry.value["endpoint"]?.string, endpoint.utf8.count <= 512
      else { throw Refusal(400, "Invalid service") }
    }
    return map
  }

  /// The place of the first of these keys that signed an operation.
  static func signer(of map: IPLDMap, among keys: [String]) throws -> Int {
    let text = map["sig"]?.string ?? ""
    guard text.utf8.allSatisfy({ $0 != UInt8(ascii: "=") }) else {
      throw Refusal(400, "Invalid signature on operation")
    }
    guard let signature = decode(text) else { throw Refusal(500, "Internal Server Error") }
    var unsigned = map
    unsigned["sig"] = nil
    let bytes = try DAGCBOREncoder.encode(.map(unsigned))
    for (place, text) in keys.enumerated() {
      guard let key = try? VerificationKey(didKey: text) else { continue }
      if key.verifies(signature, of: bytes.span) { return place }
    }
    throw Refusal(400, "Invalid signature on operation")
  }

  private static func decode(_ text: String) -> [UInt8]? {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var (bytes, held, bits): ([UInt8], UInt32, UInt32) = ([], 0, 0)
    for character in text.utf8 {
      guard let value = alphabet.firstIndex(of: character) else { return nil }
      held = held << 6 | UInt32(value)
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: held >> bits))
      }
    }
    return bytes
  }

  static func keys(_ operation: IPLDMap) -> [String] {
    if let keys = operation["rotationKeys"]?.array { return keys.compactMap(\.string) }
    return [operation["recoveryKey"], operation["signingKey"]].compactMap { $0?.string }
  }
}

extension StandInDirectory.State {
  /// Takes an operation.
  mutating func take(_ value: IPLDValue, for did: String, now: Double) throws {
    typealias Refusal = DirectoryRules.Refusal
    let map = try DirectoryRules.checkForm(value)
    let signed = try DAGCBOREncoder.encode(.map(map))
    let cid = CID(codec: .dagCBOR, hashing: signed.span)
    guard var log = logs[did] else {
      guard map["prev"] == .null, map["type"] == .string("plc_operation") else {
        throw Refusal(400, "Operations not correctly ordered")
      }
      let digest = cid.multihash.digest
      let name = "did:plc:" + Base32.encode(digest.span).prefix(24)
      guard name == did else { throw Refusal(400, "Hash of genesis operation does not match DID") }
      _ = try DirectoryRules.signer(of: map, among: DirectoryRules.keys(map))
      logs[did] = [StandInDirectory.Entry(operation: map, cid: cid, createdAt: now)]
      return
    }
    guard let text = map["prev"]?.string else {
      throw Refusal(400, "Operations not correctly ordered")
    }
    guard let prev = try? CID(text) else { throw Refusal(500, "Internal Server Error") }
    let standing = log.indices.filter { !log[$0].isNullified }
    guard let place = standing.firstIndex(where: { log[$0].cid == prev }),
      log[standing[place]].operation["type"] != .string("plc_tombstone")
    else { throw Refusal(400, "Operations not correctly ordered") }
    let keys = DirectoryRules.keys(log[standing[place]].operation)
    if place + 1 < standing.count {
      let disputed = log[standing[place + 1]]
      let rank = try DirectoryRules.signer(of: disputed.operation, among: keys)
      _ = try DirectoryRules.signer(of: map, among: Array(keys[..<rank]))
      guard now - disputed.createdAt <= DirectoryRules.recoverySeconds else {
        throw Refusal(
          400, "Recovery operation occurred outside of the allowed 72 hr recovery window")
      }
      for index in standing[(place + 1)...] { log[index].isNullified = true }
    } else {
      _ = try DirectoryRules.signer(of: map, among: keys)
      for (count, seconds, text) in [
        (10, 3600.0, "hour"), (30, 86_400, "day"), (100, 604_800, "week"),
      ]
      where log.count(where: { now - $0.createdAt < seconds }) >= count {
        throw Refusal(400, "too many operations within last \(text) (max: \(count))")
      }
    }
    log.append(StandInDirectory.Entry(operation: map, cid: cid, createdAt: now))
    logs[did] = log
  }
}
