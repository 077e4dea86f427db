package import IPLD

/// The history of a `did:plc`: the operations that the directory accepted, with its own data about
/// them, as from `/log/audit`, or without, as from `/log`.
///
/// The second form leaves out when the directory received an operation, and nullified operations.
/// Both are read as a list, and as one value after the other: so `goat plc history` prints them,
/// and the directory's `/export`.
///
/// What is read here is what operations say. Whether they are signed by whom they have to be, and
/// whether the first one hashes to the DID, needs ``Entry/operation`` as it stands, which is kept
/// for that. Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc), "audit logs".
package struct PLCLog: Hashable, Sendable {
  /// The longest log that is read, in bytes: a log of many years takes a few hundred kilobytes.
  package static let maximumLength = 4 << 20

  /// One operation.
  package struct Entry: Hashable, Sendable {
    /// When the directory received it, as it says, in RFC 3339; nil in the form that leaves it out.
    package let createdAt: String?
    /// Whether a later operation, signed by a key of higher rank, nullified it.
    package let isNullified: Bool
    /// The operation's CID, as the directory says, or else computed.
    package let cid: CID?
    /// The operation itself; without `sig` it is what is signed.
    package let operation: IPLDValue
    /// Whether it ended the DID.
    package let isTombstone: Bool
    /// The server it names.
    package let pds: ServerOrigin?
    /// The names it claims that are handles, the first being the account's.
    package let handles: [Handle]
    /// The key it names that signs the repository.
    package let signingKey: VerificationKey?

    /// The handle it names: the first name that is one.
    package var handle: Handle? { handles.first }
  }

  /// Whether it has all operations, nullified ones included, and their times.
  package var isAudit: Bool { entries.allSatisfy { $0.createdAt != nil } }

  /// The operations, the oldest first.
  package let entries: [Entry]

  /// Reads the log of one DID.
  ///
  /// - Throws: ``PLCLogError`` if it is too long, not JSON, not a list of operations, or about
  ///   another DID.
  package init(_ bytes: Span<UInt8>, of did: DID) throws(PLCLogError) {
    guard bytes.count <= Self.maximumLength else { throw .tooLong }
    let values: [IPLDValue]
    do {
      values = try DataModelJSON.decodeAll(bytes.array)
    } catch {
      throw .notJSON(error)
    }
    var entries: [Entry] = []
    for item in values.count == 1 ? values[0].array ?? values : values {
      guard let operation = item["operation"] ?? (item["sig"] == nil ? nil : item),
        operation.map != nil
      else { throw .notALog }
      let entry = Entry(item, operation)
      // An operation says whose it is only in being the first.
      let isFirst = entries.isEmpty && operation["prev"] == .null
      let about = entry.createdAt == nil && isFirst ? entry.cid?.createdDID : item["did"]?.string
      guard about != nil || entry.createdAt == nil else { throw .notALog }
      if let about, about != did.text { throw .otherAccount(about) }
      entries.append(entry)
    }
    self.entries = entries
  }

  init(entries: [Entry]) { self.entries = entries }

  /// Every server that the account had, the first one first, each once; those that only nullified
  /// operations name are left out.
  package var servers: [ServerOrigin] {
    var seen: Set<ServerOrigin> = []
    return entries.filter { !$0.isNullified }.compactMap(\.pds).filter { seen.insert($0).inserted }
  }

  /// Every signing key that the account had, the first one first, each once; those that only
  /// nullified operations name are left out.
  package var signingKeys: [VerificationKey] {
    var seen: Set<VerificationKey> = []
    return entries.filter { !$0.isNullified }.compactMap(\.signingKey)
      .filter { seen.insert($0).inserted }
  }
}

extension CID {
  /// The DID that the operation with this CID creates.
  var createdDID: String { "did:plc:" + Base32.encode(multihash.digest.span).prefix(24) }
}

extension PLCLog.Entry {
  init(_ item: IPLDValue, _ operation: IPLDValue) {
    let isAudit = item["operation"] != nil
    createdAt = isAudit ? item["createdAt"]?.string ?? "" : nil
    isNullified = item["nullified"] == .boolean(true)
    // What cannot be read is of no use here; it stays in the operation.
    cid =
      isAudit
      ? item["cid"]?.string.flatMap { try? CID($0) }
      : (try? DAGCBOREncoder.encode(operation)).map { CID(codec: .dagCBOR, hashing: $0.span) }
    self.operation = operation
    isTombstone = operation["type"]?.string == "plc_tombstone"
    let key: IPLDValue?
    if operation["type"]?.string == "create" {
      // The form of 2022, in which both may come without a scheme.
      pds = operation["service"]?.string.flatMap {
        try? ServerOrigin($0.contains("://") ? $0 : "https://" + $0)
      }
      let name = operation["handle"]?.string.flatMap {
        DIDDocument.handle(.string($0.hasPrefix("at://") ? $0 : "at://" + $0))
      }
      handles = name.map { [$0] } ?? []
      key = operation["signingKey"]
    } else {
      pds = operation["services"]?["atproto_pds"]?["endpoint"]?.string.flatMap {
        try? ServerOrigin($0)
      }
      handles = (operation["alsoKnownAs"]?.array ?? []).compactMap(DIDDocument.handle)
      key = operation["verificationMethods"]?["atproto"]
    }
    signingKey = key?.string.flatMap { try? VerificationKey(didKey: $0) }
  }
}

/// Why a text is not the log that was requested.
package enum PLCLogError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// It is longer than ``PLCLog/maximumLength``.
  case tooLong
  /// It is not JSON.
  case notJSON(JSONError)
  /// It is not a list of operations.
  case notALog
  /// It is about another DID.
  case otherAccount(String)

  /// What is wrong with it.
  package var faultKind: FaultKind {
    switch self {
    case .tooLong: .limit
    case .notJSON, .notALog: .damage
    case .otherAccount: .notGenuine
    }
  }

  /// The message for people.
  package var description: String {
    switch self {
    case .tooLong: "the PLC log is over \(PLCLog.maximumLength) bytes"
    case .notJSON(let error): "the PLC log is \(error)"
    case .notALog: "the PLC log is not a list of operations"
    case .otherAccount(let did):
      "the PLC log is about another account, \(did.unicodeScalars.prefix(200).map { $0.escaped(asASCII: true) }.joined())"
    }
  }
}
