public import IPLD

/// A repository's signed commit: whose it is, which revision, and the root of its tree.
///
/// A DAG-CBOR map. Version 3: `did`, `rev`, `data`, `prev` (null, or a link), `version`, `sig`.
/// Version 2 has the same fields but `rev`, which it may lack. Source:
/// [repository](https://atproto.com/specs/repository), "commit objects".
public struct Commit: Hashable, Sendable {
  /// No commit is longer, in bytes: they take some 250, and a long one would be a great many values
  /// in memory.
  package static let maximumLength = 1 << 20

  /// The account.
  public let did: DID
  /// 3, or 2.
  public let version: Int
  /// The revision; a commit of version 2 has none.
  public let rev: TID?
  /// The root of the tree of records.
  public let data: CID
  /// The commit before this one, where one is named.
  public let prev: CID?
  /// Whether there is a `prev` field, null or not.
  package let hasPrev: Bool
  /// The signature, as it stands.
  public let signature: [UInt8]
  /// What the signature is over: the commit's bytes without the field `sig`, everything else as it
  /// stands.
  package let unsignedBytes: [UInt8]
  /// The names of all fields, in DAG-CBOR's order.
  package let fields: [String]

  /// Reads a commit from its block.
  ///
  /// - Throws: ``RepositoryError``: what is missing or malformed.
  package init(_ bytes: Span<UInt8>) throws(RepositoryError) {
    guard bytes.count <= Self.maximumLength else { throw .commitTooLong }
    let value: IPLDValue
    do {
      value = try DAGCBORDecoder.decode(bytes)
    } catch {
      throw .commitNotDAGCBOR(error)
    }
    guard let map = value.map else { throw .notACommit(fields: []) }
    fields = map.keys
    if map["version"] == nil, map["root"]?.link != nil { throw .version1(fields: fields) }
    guard let version = map["version"]?.integer, let data = map["data"]?.link else {
      throw .notACommit(fields: fields)
    }
    guard version == 2 || version == 3 else { throw .unknownCommitVersion(version) }
    did = try Self.identifier(map, "did")
    rev = version == 2 && map["rev"] == nil ? nil : try Self.identifier(map, "rev")
    switch map["prev"] {
    case nil, .null?: prev = nil
    case .link(let link)?: prev = link
    default: throw .malformedField("prev", "it is neither null nor a link")
    }
    guard let signature = map["sig"]?.bytes else {
      throw .malformedField("sig", "it is not a byte string")
    }
    self.version = version
    self.data = data
    self.signature = signature
    hasPrev = map["prev"] != nil
    do {
      unsignedBytes = try Self.unsigned(bytes, fieldCount: map.entries.count)
    } catch {
      throw .commitNotDAGCBOR(error)
    }
  }

  /// How long a signature is, in bytes: r, then s.
  package static let signatureLength = 64

  /// What is wrong with a commit that can be read; nil if nothing is.
  ///
  /// A signature whose length is not AT Protocol's cannot be valid.
  package var flaw: RepositoryError? {
    let length = Self.signatureLength
    guard signature.count != length else { return nil }
    return .malformedField("sig", "it has \(signature.count) bytes instead of \(length)")
  }

  private static func identifier<Name: Identifier>(_ map: IPLDMap, _ field: String)
    throws(RepositoryError) -> Name
  {
    guard let text = map[field]?.string else { throw .malformedField(field, "it is not text") }
    do {
      return try Name(text)
    } catch {
      throw .malformedField(field, "\(error)")
    }
  }

  /// The bytes of a map without its entry `sig`, which is cut out of them: what is not known here
  /// is signed, too.
  private static func unsigned(_ bytes: Span<UInt8>, fieldCount: Int) throws(DAGCBORError)
    -> [UInt8]
  {
    var scanner = DAGCBORScanner()
    _ = try scanner.next(in: bytes)
    var result: [UInt8] = []
    DAGCBOREncoder.appendMapHead(fieldCount - 1, to: &result)
    var kept = scanner.offset
    while true {
      let start = scanner.offset
      guard let token = try scanner.next(in: bytes) else { break }
      guard scanner.depth == 1, case .key(let range) = token, signatureKey.matches(bytes, range)
      else { continue }
      // The value is a byte string: one token.
      _ = try scanner.next(in: bytes)
      result.append(contentsOf: bytes.extracting(kept..<start))
      kept = scanner.offset
    }
    result.append(contentsOf: bytes.extracting(kept..<bytes.count))
    return result
  }

  private static let signatureKey = ShortKey("sig")
}

/// Why a block is not a commit, or not one as it must be.
public enum RepositoryError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// The CAR names no root.
  case noRoot
  /// The block that the CAR names as its root is not in it.
  case commitMissing(CID)
  /// The block is longer than ``Commit/maximumLength``.
  case commitTooLong
  /// The block is not DAG-CBOR.
  case commitNotDAGCBOR(DAGCBORError)
  /// The block is something else; these are its fields, if it is a map.
  case notACommit(fields: [String])
  /// The format of 2022, with a separate root object.
  case version1(fields: [String])
  /// A version that is not known here.
  case unknownCommitVersion(Int)
  /// A field is malformed.
  case malformedField(String, String)

  /// There is no commit to read.
  public var faultKind: FaultKind { .damage }

  /// The message for people.
  public var description: String {
    switch self {
    case .noRoot: "the CAR names no root, so it is not a repository"
    case .commitMissing(let cid): "the commit \(cid), the root of the CAR, is not in it"
    case .commitTooLong: "the commit has more than \(Commit.maximumLength) bytes"
    case .commitNotDAGCBOR(let error): "the commit is \(error)"
    case .notACommit(let fields):
      "the root of the CAR is not a commit"
        + (fields.isEmpty ? "" : " (it has the fields \(Self.list(fields)))")
    case .version1:
      "the repository is in the format of 2022 (version 1), which AT Protocol no longer uses; versions 2 and 3 are read"
    case .unknownCommitVersion(let version):
      "the commit is of version \(version); versions 2 and 3 are read"
    case .malformedField(let name, let why): "the commit's field \"\(name)\" is malformed: \(why)"
    }
  }

  /// The first few names, in ASCII: the block may hold anything.
  private static func list(_ fields: [String]) -> String {
    let shown = fields.prefix(10).map { field in
      field.unicodeScalars.prefix(64).map { $0.escaped(asASCII: true) }.joined()
    }
    return shown.joined(separator: ", ") + (fields.count > shown.count ? ", …" : "")
  }

  /// The fields of a root that is not a commit.
  package var rootFields: [String]? {
    switch self {
    case .notACommit(let fields) where !fields.isEmpty: fields
    case .version1(let fields): fields
    default: nil
    }
  }
}
