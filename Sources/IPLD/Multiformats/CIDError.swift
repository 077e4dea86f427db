/// Why bytes or a text are not a CID, and at which byte.
package struct CIDError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  package enum Reason: Equatable, Sendable {
    /// The bytes end inside the CID.
    case truncated
    /// A varint needs more than 63 bits.
    case varintTooLong
    /// A varint is longer than it needs to be.
    case varintNotMinimal
    /// Neither version 0 nor version 1.
    case unknownVersion
    /// The digest is longer than ``Multihash/maximumDigestLength``.
    case digestTooLong
    /// Bytes follow the CID.
    case trailingBytes
    /// The text is longer than any CID.
    case textTooLong
    /// The text's first character names no encoding that is read here.
    case unknownMultibase
    /// The text holds a character outside its alphabet, or is not the one spelling of its bytes.
    case notInAlphabet
  }

  /// The broken rule.
  package let reason: Reason
  /// Where, in bytes.
  package let offset: Int

  /// An error with its place.
  package init(_ reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// What a person reads.
  package var description: String {
    let what =
      switch reason {
      case .truncated: "the CID is cut short"
      case .varintTooLong: "a varint of the CID takes more than 63 bits"
      case .varintNotMinimal: "a varint of the CID is not minimal"
      case .unknownVersion: "the CID is neither version 0 nor version 1"
      case .digestTooLong: "the CID's digest is over \(Multihash.maximumDigestLength) bytes"
      case .trailingBytes: "bytes follow the CID"
      case .textTooLong: "the text is too long for a CID"
      case .unknownMultibase: "the CID is written neither in base32 (b…) nor in base58 (z…, Qm…)"
      case .notInAlphabet: "the CID's text is not canonical base32 or base58"
      }
    return "\(what), at byte \(offset)"
  }

  /// A varint that has to be there.
  static func varint(_ bytes: Span<UInt8>, at offset: inout Int) throws(CIDError) -> UInt64 {
    switch Varint.read(bytes, at: &offset) {
    case .value(let value): return value
    case .truncated: throw CIDError(.truncated, offset: bytes.count)
    case .tooLong: throw CIDError(.varintTooLong, offset: offset)
    case .notMinimal: throw CIDError(.varintNotMinimal, offset: offset)
    }
  }
}
