/// Why bytes are not DAG-CBOR, and at which byte.
public struct DAGCBORError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  package enum Reason: Equatable, Sendable {
    /// The bytes end inside an item.
    case truncated
    /// Bytes follow the item.
    case trailingBytes
    /// An integer, length or tag takes more bytes than it needs.
    case notMinimal
    /// A head with the reserved additional information 28, 29 or 30.
    case reservedHead
    /// A string, array or map of indefinite length, or a "break".
    case indefiniteLength
    /// A tag other than 42.
    case unknownTag
    /// Tag 42 on anything but a byte string that begins with a zero byte.
    case notALink
    /// A link whose CID is malformed.
    case malformedCID(CIDError.Reason)
    /// A map key that is not a text string.
    case keyNotString
    /// A map key that sorts before its predecessor.
    case keysNotSorted
    /// A map key that its map has already.
    case duplicateKey
    /// A text string that is not UTF-8.
    case notUTF8
    /// A simple value other than false, true and null.
    case unknownSimpleValue
    /// A float of 16 or 32 bits.
    case shortFloat
    /// A float that is NaN or infinite.
    case notFinite
    /// Items nested deeper than ``DAGCBORScanner/maximumDepth``.
    case tooDeep
    /// AT Protocol: a float.
    case floatNotAllowed
    /// AT Protocol: an integer outside 64 bits, signed.
    case integerOutOfRange
    /// AT Protocol: a link that is not a CID of version 1 with SHA-256, DAG-CBOR or raw.
    case linkNotAllowed
  }

  /// The broken rule.
  package let reason: Reason
  /// Where, counted in bytes from the start of the item.
  package let offset: Int

  /// An error with its place.
  package init(_ reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// It is not what it claims to be.
  public var faultKind: FaultKind { .damage }

  /// The message for people.
  public var description: String {
    let what =
      switch reason {
      case .truncated: "the bytes end inside an item"
      case .trailingBytes: "bytes follow the item"
      case .notMinimal: "an integer or length is not minimal"
      case .reservedHead: "a reserved head"
      case .indefiniteLength: "an item of indefinite length"
      case .unknownTag: "a tag other than 42"
      case .notALink: "tag 42 on something that is not a link"
      case .malformedCID(let reason):
        "a link with a malformed CID (\(CIDError(reason, offset: offset).description))"
      case .keyNotString: "a map key that is not a text string"
      case .keysNotSorted: "map keys out of order"
      case .duplicateKey: "a map key that occurs twice"
      case .notUTF8: "a text string that is not UTF-8"
      case .unknownSimpleValue: "a simple value other than false, true and null"
      case .shortFloat: "a float of fewer than 64 bits"
      case .notFinite: "a float that is not finite"
      case .tooDeep: "nested deeper than \(DAGCBORScanner.maximumDepth) levels"
      case .floatNotAllowed: "a float, which AT Protocol does not allow"
      case .integerOutOfRange: "an integer outside 64 bits, which AT Protocol does not allow"
      case .linkNotAllowed: "a link that AT Protocol does not allow"
      }
    // What is too deep may well be valid; it is only not read.
    let verdict = reason == .tooDeep ? "" : "not valid DAG-CBOR: "
    return "\(verdict)\(what), at byte \(offset)"
  }
}
