/// Why bytes or a text are not a CID, and at which byte.
public struct CIDError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  public enum Reason: String, Sendable {
    /// The bytes end inside the CID.
    case truncated = "the CID is cut short"
    /// A varint needs more than 63 bits.
    case varintTooLong = "a varint of the CID takes more than 63 bits"
    /// A varint is longer than it needs to be.
    case varintNotMinimal = "a varint of the CID is not minimal"
    /// Neither version 0 nor version 1.
    case unknownVersion = "the CID is neither version 0 nor version 1"
    /// The digest is longer than ``Multihash/maximumDigestLength``.
    case digestTooLong = "the CID's digest is over 2048 bytes"
    /// Bytes follow the CID.
    case trailingBytes = "bytes follow the CID"
    /// The text is longer than any CID.
    case textTooLong = "the text is too long for a CID"
    /// The text's first character names no encoding that is read here.
    case unknownMultibase = "the CID is written neither in base32 (b…) nor in base58 (z…, Qm…)"
    /// The text holds a character outside its alphabet, or is not the one spelling of its bytes.
    case notInAlphabet = "the CID's text is not canonical base32 or base58"
  }

  /// The broken rule.
  public let reason: Reason
  /// Where, in bytes.
  public let offset: Int

  /// An error with its place.
  public init(_ reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// The message for people.
  public var description: String {
    "\(reason.rawValue), at byte \(offset)"
  }

  /// A required varint.
  static func varint(_ bytes: Span<UInt8>, at offset: inout Int) throws(CIDError) -> UInt64 {
    switch Varint.read(bytes, at: &offset) {
    case .value(let value): return value
    case .truncated: throw CIDError(.truncated, offset: bytes.count)
    case .tooLong: throw CIDError(.varintTooLong, offset: offset)
    case .notMinimal: throw CIDError(.varintNotMinimal, offset: offset)
    }
  }
}
