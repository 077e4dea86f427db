/// The name of a kind of record, or of a method: a namespaced identifier, such as
/// `com.example.fooBar`.
///
/// It is a domain name written backwards, the authority, followed by one name. Its rules
/// (<https://atproto.com/specs/nsid>, "NSID Syntax"):
///
/// - three or more segments separated by `.`, with none before the first and none after the last;
/// - a segment of the authority is 1 to 63 letters, digits and hyphens, with no hyphen at either
///   end; the first one does not start with a digit;
/// - the name is 1 to 63 letters and digits and does not start with a digit;
/// - at most 317 bytes.
///
/// Two points where the specification's page and the protocol's own conformance vectors differ are
/// settled as the vectors have them: a name may hold digits, and the authority has no limit of its
/// own.
///
/// The text is kept as it was written. The case of an authority means nothing, but an NSID is also
/// part of the key of a record, and keys are compared byte by byte.
package struct NSID: Identifier {
  /// The most bytes in an NSID: an authority of 253, a `.`, and a name of 63.
  package static let maximumLength = 317

  /// The name in messages of an NSID.
  package static let kind = IdentifierError.Kind.nsid

  /// The NSID as text.
  package let text: String

  /// Makes one of text that is known to be an NSID.
  package init(checked text: String) { self.text = text }

  /// The segments of the authority in the order of the NSID: the top-level domain comes first.
  package var authority: [Substring] { text.split(separator: ".").dropLast() }

  /// The last segment, such as `fooBar`.
  package var name: Substring {
    text[text.index(after: text.lastIndex(of: ".") ?? text.startIndex)...]
  }
}

extension NSID {
  /// The first rule that `bytes` break, or nil if they spell an NSID.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    var segments = 1
    var start = 0
    var end = bytes.end(before: DomainLabel.separator, from: start)
    while end < bytes.count {
      if let broken = DomainLabel.fault(
        in: bytes, at: start..<end, mayStartWithDigit: segments > 1)
      {
        return fault(broken.reason, at: broken.offset)
      }
      segments += 1
      start = end + 1
      end = bytes.end(before: DomainLabel.separator, from: start)
    }
    if let fault = nameFault(in: bytes, from: start) { return fault }
    return segments < 3 ? fault(.tooFewSegments(minimum: 3), at: bytes.count) : nil
  }

  /// The first rule that the name, all of `bytes` from `start` on, breaks.
  private static func nameFault(in bytes: Span<UInt8>, from start: Int) -> IdentifierError? {
    guard start < bytes.count else { return fault(.emptySegment, at: start) }
    for index in start..<bytes.count where !bytes[index].isASCIIAlphanumeric {
      return fault(.forbiddenByte(bytes[index]), at: index)
    }
    let maximum = DomainLabel.maximumLength
    guard bytes.count - start <= maximum else {
      return fault(.segmentTooLong(maximum: maximum), at: start + maximum)
    }
    return bytes[start].isASCIIDigit ? fault(.leadingDigit, at: start) : nil
  }
}
