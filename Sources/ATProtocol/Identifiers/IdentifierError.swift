/// Why a text is not the identifier that it was taken for, and where.
public struct IdentifierError: Error, Hashable, Sendable {
  /// The kind of identifier whose grammar is broken.
  ///
  /// When the text is made of several identifiers, as an AT URI is, this is the innermost one.
  package let kind: Kind

  /// The rule that is broken.
  package let reason: Reason

  /// The byte at which it is broken, counted from the start of the text that was given.
  ///
  /// It equals the length of the text when something is missing at its end.
  package let offset: Int

  /// Names a broken rule and its place.
  package init(kind: Kind, reason: Reason, offset: Int) {
    self.kind = kind
    self.reason = reason
    self.offset = offset
  }

  /// The kinds of identifier.
  package enum Kind: String, Hashable, Sendable, CaseIterable {
    /// A ``ATProtocol/DID``.
    case did = "DID"
    /// A ``ATProtocol/Handle``.
    case handle
    /// Either of the two: a ``ATProtocol/ATIdentifier``.
    case atIdentifier = "DID or handle"
    /// A ``ATProtocol/NSID``.
    case nsid = "NSID"
    /// A ``ATProtocol/RecordKey``.
    case recordKey = "record key"
    /// A ``ATProtocol/RecordPath``.
    case recordPath = "record path"
    /// A ``ATProtocol/TID``.
    case tid = "TID"
    /// An ``ATProtocol/ATURI``.
    case atURI = "AT URI"
  }

  /// The rules that a text can break.
  package enum Reason: Hashable, Sendable {
    /// There is no text.
    case empty
    /// The text has more bytes than its kind may have.
    case tooLong(maximum: Int)
    /// The text has another length than the only one its kind has.
    case wrongLength(required: Int)
    /// The text does not start with the scheme of its kind, `did:` or `at://`.
    case missingScheme
    /// The byte is not allowed in this place.
    case forbiddenByte(UInt8)
    /// The text may not end with this byte.
    case forbiddenEnd(UInt8)
    /// Nothing stands between two separators, or after the last one.
    case emptySegment
    /// A segment has more bytes than a segment may have.
    case segmentTooLong(maximum: Int)
    /// A segment starts or ends with a hyphen.
    case hyphenAtEdge
    /// A segment that must start with a letter starts with a digit.
    case leadingDigit
    /// The text has fewer segments than its kind must have.
    case tooFewSegments(minimum: Int)
    /// The text is `.` or `..`, which would mean a place relative to another.
    case relativePath
    /// The number that the text spells does not fit in 64 bits.
    case overflow
  }
}

extension IdentifierError: CustomStringConvertible {
  /// One clause for people, such as `not a handle: an empty segment at byte 5`.
  public var description: String {
    let article = kind == .atURI || kind == .nsid ? "an" : "a"
    return "not \(article) \(kind.rawValue): \(complaint) at byte \(offset)"
  }

  private var complaint: String {
    switch reason {
    case .empty: "no text"
    case .tooLong(let maximum): "longer than \(maximum) bytes"
    case .wrongLength(let required): "a length other than \(required)"
    case .missingScheme: "no \"\(kind == .did ? "did:" : "at://")\""
    case .forbiddenByte(let byte): "\(Self.spelling(of: byte)) is not allowed"
    case .forbiddenEnd(let byte): "\(Self.spelling(of: byte)) is not allowed as the last character"
    case .emptySegment: "an empty segment"
    case .segmentTooLong(let maximum): "a segment longer than \(maximum) bytes"
    case .hyphenAtEdge: "a segment starts or ends with a hyphen"
    case .leadingDigit: "a digit where a letter is required"
    case .tooFewSegments(let minimum): "fewer than \(minimum) segments"
    case .relativePath: "\".\" and \"..\" are not names"
    case .overflow: "more than 64 bits"
    }
  }

  /// A byte in quotation marks if it is visible ASCII, else in hexadecimal.
  private static func spelling(of byte: UInt8) -> String {
    guard byte > 0x20, byte < 0x7F else {
      return "byte 0x\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16, uppercase: true))"
    }
    return "\"\(Unicode.Scalar(byte))\""
  }
}

extension IdentifierError {
  /// The same fault, told by the text that contains this one from byte `distance` on.
  func shifted(by distance: Int) -> Self {
    Self(kind: kind, reason: reason, offset: offset + distance)
  }
}
