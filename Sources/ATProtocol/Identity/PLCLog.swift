package import IPLD

/// The history of a `did:plc`: every operation that the directory took, as `/log/audit` has it.
///
/// What is read here is what operations say. Whether they are signed by whom they have to be, and
/// whether the first one hashes to the DID, needs ``Entry/operation`` as it stands, which is kept
/// for that. Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc), "audit logs".
package struct PLCLog: Hashable, Sendable {
  /// No longer log is read, in bytes: a log of many years takes some hundred kilobytes.
  package static let maximumLength = 4 << 20

  /// One operation.
  package struct Entry: Hashable, Sendable {
    /// When the directory took it, as it says, in RFC 3339.
    package let createdAt: String
    /// Whether a later operation, signed by a key of higher rank, took it back.
    package let isNullified: Bool
    /// The operation's CID, as the directory says.
    package let cid: CID?
    /// The operation itself: what is signed once `sig` is taken away.
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

  /// The operations, the oldest first.
  package let entries: [Entry]

  /// Reads the log of one DID.
  ///
  /// - Throws: ``PLCLogError`` if it is too long, not JSON, not a list of operations, or about
  ///   another DID.
  package init(_ bytes: Span<UInt8>, of did: DID) throws(PLCLogError) {
    guard bytes.count <= Self.maximumLength else { throw .tooLong }
    let value: IPLDValue
    do {
      value = try DataModelJSON.decode(bytes.array)
    } catch {
      throw .notJSON(error)
    }
    guard let items = value.array else { throw .notALog }
    var entries: [Entry] = []
    entries.reserveCapacity(items.count)
    for item in items {
      guard let about = item["did"]?.string, let operation = item["operation"],
        operation.map != nil
      else { throw .notALog }
      guard about == did.text else { throw .otherAccount(about) }
      entries.append(Entry(item, operation))
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

extension PLCLog.Entry {
  init(_ item: IPLDValue, _ operation: IPLDValue) {
    createdAt = item["createdAt"]?.string ?? ""
    isNullified = item["nullified"] == .boolean(true)
    // What cannot be read is of no use here; it stays in the operation.
    cid = item["cid"]?.string.flatMap { try? CID($0) }
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

/// Why a text is not the log that was asked for.
package enum PLCLogError: Error, Equatable, Sendable, CustomStringConvertible {
  /// It is longer than ``PLCLog/maximumLength``.
  case tooLong
  /// It is not JSON.
  case notJSON(JSONError)
  /// It is not a list of operations.
  case notALog
  /// It is about another DID.
  case otherAccount(String)

  /// What a person reads.
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
