internal import IPLD

/// One operation of a PLC log, read strictly: every field is present and has its type, and there is
/// no other field.
///
/// The directory takes nothing else, and what is signed and hashed is the canonical DAG-CBOR of
/// exactly these fields. Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc), "operation
/// serialization, signing, and validation".
struct PLCOperation {
  /// The largest signed operation, in bytes of DAG-CBOR.
  static let maximumLength = 7500
  /// The most rotation keys: the specification says five, but the directory accepts ten.
  static let maximumRotationKeys = 10

  /// The keys of a log by the bytes of their texts, since texts are equal to Swift that are not the
  /// same bytes; most operations repeat those of the one before.
  typealias KnownKeys = [[UInt8]: VerificationKey]

  let kind: PLCHistory.Kind
  /// The operation that it follows, nil for a first one.
  let prev: CID?
  let signature: [UInt8]
  /// The bytes that are signed.
  let unsignedBytes: [UInt8]
  let cid: CID
  /// The keys that may sign what follows, in the order of their authority.
  let rotationKeys: [VerificationKey]

  /// Reads an operation; keys that were read before are taken from `keys`, without checking their
  /// points again.
  init(_ value: IPLDValue, keys: inout KnownKeys) throws(PLCFault.Reason) {
    guard var map = value.map else { throw .malformedField("type") }
    let kind = try Self.kind(map["type"])
    guard map.keys == kind.fields else {
      throw .wrongFields(map.keys.first { !kind.fields.contains($0) })
    }
    self.kind = kind
    prev = try Self.prev(map["prev"])
    rotationKeys = try Self.rotationKeys(map, kind, &keys)
    try Self.checkContent(map, kind)

    let signed = try Self.encode(map)
    guard signed.count <= Self.maximumLength else { throw .tooLong(signed.count) }
    cid = CID(codec: .dagCBOR, hashing: signed.span)
    guard let text = map["sig"]?.string, let signature = Base64.decodeURL(text),
      signature.count == Commit.signatureLength
    else { throw .malformedSignature }
    self.signature = signature
    map["sig"] = nil
    unsignedBytes = try Self.encode(map)
  }

  /// The position of the first of these keys that signed the operation.
  func signer(among keys: some Collection<VerificationKey>) -> Int? {
    var tried: Set<VerificationKey> = []
    for (rank, key) in keys.enumerated() where tried.insert(key).inserted {
      if key.verifies(signature, of: unsignedBytes.span) { return rank }
    }
    return nil
  }

  private static func kind(_ value: IPLDValue?) throws(PLCFault.Reason) -> PLCHistory.Kind {
    switch value?.string {
    case "plc_operation": .update
    case "plc_tombstone": .tombstone
    case "create": .legacyCreate
    default: throw .malformedField("type")
    }
  }

  private static func prev(_ value: IPLDValue?) throws(PLCFault.Reason) -> CID? {
    if case .null? = value { return nil }
    guard let text = value?.string, let cid = try? CID(text) else {
      throw .malformedField("prev")
    }
    return cid
  }

  private static func rotationKeys(
    _ map: IPLDMap, _ kind: PLCHistory.Kind, _ keys: inout KnownKeys
  ) throws(PLCFault.Reason) -> [VerificationKey] {
    let field: String
    let values: [IPLDValue?]
    switch kind {
    case .tombstone: return []
    case .legacyCreate:
      // The recovery key had the higher authority.
      (field, values) = ("recoveryKey or signingKey", [map["recoveryKey"], map["signingKey"]])
    case .update:
      field = "rotationKeys"
      guard let items = map[field]?.array else { throw .malformedField(field) }
      guard items.count <= maximumRotationKeys else { throw .tooManyRotationKeys(items.count) }
      values = items
    }
    var result: [VerificationKey] = []
    for value in values {
      guard let text = value?.string else { throw .malformedField(field) }
      let bytes = Array(text.utf8)
      guard let key = keys[bytes] ?? (try? VerificationKey(didKey: text)) else {
        throw .malformedField(field)
      }
      keys[bytes] = key
      result.append(key)
    }
    return result
  }

  /// The shapes of the fields that are not read here.
  private static func checkContent(_ map: IPLDMap, _ kind: PLCHistory.Kind)
    throws(PLCFault.Reason)
  {
    switch kind {
    case .tombstone: break
    case .legacyCreate:
      for field in ["handle", "service"] where map[field]?.string == nil {
        throw .malformedField(field)
      }
    case .update:
      guard let names = map["alsoKnownAs"]?.array, names.allSatisfy({ $0.string != nil }) else {
        throw .malformedField("alsoKnownAs")
      }
      guard let methods = map["verificationMethods"]?.map,
        methods.entries.allSatisfy({ $0.value.string != nil })
      else { throw .malformedField("verificationMethods") }
      guard let services = map["services"]?.map,
        services.entries.allSatisfy({ isService($0.value) })
      else { throw .malformedField("services") }
    }
  }

  private static func isService(_ value: IPLDValue) -> Bool {
    value.map?.keys == ["type", "endpoint"] && value["type"]?.string != nil
      && value["endpoint"]?.string != nil
  }

  /// The shapes have been checked, so that nothing in the map is deep.
  private static func encode(_ map: IPLDMap) throws(PLCFault.Reason) -> [UInt8] {
    guard let bytes = try? DAGCBOREncoder.encode(.map(map)) else { throw .malformedField("type") }
    return bytes
  }
}

extension PLCHistory.Kind {
  /// The fields of such an operation, in DAG-CBOR's order.
  fileprivate var fields: [String] {
    switch self {
    case .legacyCreate:
      ["sig", "prev", "type", "handle", "service", "signingKey", "recoveryKey"]
    case .update:
      [
        "sig", "prev", "type", "services", "alsoKnownAs", "rotationKeys", "verificationMethods",
      ]
    case .tombstone: ["sig", "prev", "type"]
    }
  }
}
