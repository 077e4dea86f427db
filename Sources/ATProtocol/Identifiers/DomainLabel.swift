/// The grammar of one label of a domain name, which handles and NSIDs are made of.
///
/// A label is 1 to 63 letters, digits and hyphens, with no hyphen at either end (RFC 1035, section
/// 2.3.1, relaxed by RFC 1123, section 2.1, to let it start with a digit).
enum DomainLabel {
  /// The most bytes in a label: its length was once sent in six bits.
  static let maximumLength = 63

  /// The byte between labels.
  static let separator = UInt8(ascii: ".")

  /// The first rule that the label at `range` breaks, with its offset in `bytes`.
  static func fault(
    in bytes: Span<UInt8>, at range: Range<Int>, mayStartWithDigit: Bool
  ) -> (reason: IdentifierError.Reason, offset: Int)? {
    let hyphen = UInt8(ascii: "-")
    guard !range.isEmpty else { return (.emptySegment, range.lowerBound) }
    for index in range {
      let byte = bytes[index]
      guard byte.isASCIIAlphanumeric || byte == hyphen else {
        return (.forbiddenByte(byte), index)
      }
    }
    guard range.count <= maximumLength else {
      return (.segmentTooLong(maximum: maximumLength), range.lowerBound + maximumLength)
    }
    let first = range.lowerBound
    let last = range.upperBound - 1
    if bytes[first] == hyphen { return (.hyphenAtEdge, first) }
    if bytes[last] == hyphen { return (.hyphenAtEdge, last) }
    if bytes[first].isASCIIDigit, !mayStartWithDigit { return (.leadingDigit, first) }
    return nil
  }
}
