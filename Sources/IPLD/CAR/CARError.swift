/// Why bytes are not a CAR, and at which byte of it.
public struct CARError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  package enum Reason: Equatable, Sendable {
    /// The bytes end before the header does.
    case truncatedHeader
    /// The bytes end inside a section.
    case truncatedSection
    /// A length is not a minimal varint of at most 63 bits.
    case malformedLength
    /// The header is longer than the limit, in bytes.
    case headerTooLong(limit: Int)
    /// The header is empty, or not a map of `roots` and `version`.
    case malformedHeader
    /// The header is not DAG-CBOR.
    case headerNotDAGCBOR(DAGCBORError.Reason)
    /// The header says a version that is neither 1 nor 2.
    case unknownVersion(UInt64)
    /// The header of version 2 points outside of the file.
    case malformedVersion2
    /// A section is longer than the limit, in bytes.
    case sectionTooLong(limit: Int)
    /// A block is longer than one of a repository may be: how many bytes it has.
    case blockTooLong(CID, length: Int)
    /// A section of length 0.
    case emptySection
    /// A section does not begin with a CID.
    case malformedCID(CIDError.Reason)
    /// A block's bytes do not hash to its CID.
    case contentMismatch(CID)
  }

  /// The broken rule.
  package let reason: Reason
  /// Where, in bytes from the start of the input.
  package let offset: Int

  /// An error with its place.
  package init(_ reason: Reason, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// The message for people.
  public var description: String {
    switch reason {
    case .truncatedHeader: "the CAR ends inside its header, at byte \(offset)"
    case .truncatedSection: "the CAR is cut short: it ends inside the section at byte \(offset)"
    case .malformedLength: "not a CAR: a malformed length, at byte \(offset)"
    case .headerTooLong(let limit): "the CAR header claims more than \(limit) bytes"
    case .malformedHeader:
      "not a CAR: the header is not a map of roots (links) and version, at byte \(offset)"
    case .headerNotDAGCBOR(let reason):
      "not a CAR: the header is \(DAGCBORError(reason, offset: offset))"
    case .unknownVersion(let version): "the CAR has version \(version); only 1 and 2 are supported"
    case .malformedVersion2: "the CAR of version 2 points outside its file"
    case .sectionTooLong(let limit):
      "the section at byte \(offset) claims more than \(limit) bytes"
    case .blockTooLong(let cid, let length):
      "the block \(cid) at byte \(offset) has \(length) bytes; a record or tree node may have \(RepositoryLimits.block)"
    case .emptySection: "the section at byte \(offset) is empty"
    case .malformedCID(let reason):
      "a section without a CID: \(CIDError(reason, offset: offset))"
    case .contentMismatch(let cid):
      "the block at byte \(offset) does not hash to its CID \(cid)"
    }
  }
}

extension CARError {
  /// Whether the CAR ends before its end.
  package var isCut: Bool {
    switch reason {
    case .truncatedHeader, .truncatedSection: true
    default: false
    }
  }

  /// Too long, or damaged.
  public var faultKind: FaultKind {
    switch reason {
    case .sectionTooLong, .blockTooLong: .limit
    default: .damage
    }
  }
}

/// How long a CAR's parts may claim to be.
package struct CARLimits: Sendable {
  /// The longest header, in bytes.
  package var header: Int
  /// The longest section, CID and body, in bytes.
  package var section: Int

  /// Limits for headers and sections.
  package init(header: Int, section: Int) {
    self.header = header
    self.section = section
  }

  /// For bytes that arrive from elsewhere and are held in memory, block by block.
  package static let streaming = CARLimits(
    header: 1 << 20, section: CID.maximumLength + RepositoryLimits.block)
  /// For bytes that lie in a file already, where a long section costs no memory: no longer than
  /// the file.
  package static let mapped = CARLimits(header: 1 << 20, section: .max)
}
