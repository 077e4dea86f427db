/// The name that an account is known by to people: a domain name, such as `alice.example.com`.
///
/// Its rules (<https://atproto.com/specs/handle>, "Handle Identifier Syntax"):
///
/// - two or more labels separated by `.`, with none before the first and none after the last;
/// - a label is 1 to 63 letters, digits and hyphens, with no hyphen at either end;
/// - the last label does not start with a digit, so that no IP address is a handle;
/// - at most 253 bytes.
///
/// Handles are not case-sensitive: a value holds its text in lower case. Names that look like
/// handles but can never belong to an account are still handles in syntax; ask
/// ``hasReservedTopLevel``.
public struct Handle: Identifier {
  /// The most bytes in a handle, as in any domain name written out.
  package static let maximumLength = 253

  /// The name in messages of a handle.
  package static let kind = IdentifierError.Kind.handle

  /// The handle in lower case.
  public let text: String

  /// Makes one of text that is known to be a handle, in any case.
  package init(checked text: String) { self.text = text.lowercased() }

  /// The last label, such as `com`.
  package var topLevel: Substring {
    text[text.index(after: text.lastIndex(of: ".") ?? text.startIndex)...]
  }

  /// Whether the handle lies under a top-level domain that no account may use.
  ///
  /// The specification lists them under "Additional Non-Syntax Restrictions": their names do not
  /// resolve on the public Internet, or not to anything that a person owns. `handle.invalid`, which
  /// services show in place of a handle that does not resolve, is among them.
  package var hasReservedTopLevel: Bool { Self.reservedTopLevels.contains(String(topLevel)) }

  /// The top-level domains that no account may use.
  ///
  /// `test` is not one of them: it is allowed for development.
  package static let reservedTopLevels: Set<String> = [
    "alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion",
  ]
}

extension Handle {
  /// The first rule that `bytes` break, or nil if they spell a handle.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    var labels = 0
    var start = 0
    while true {
      let end = bytes.end(before: DomainLabel.separator, from: start)
      let isLast = end == bytes.count
      if let broken = DomainLabel.fault(
        in: bytes, at: start..<end, mayStartWithDigit: !isLast)
      {
        return fault(broken.reason, at: broken.offset)
      }
      labels += 1
      if isLast { break }
      start = end + 1
    }
    return labels < 2 ? fault(.tooFewSegments(minimum: 2), at: bytes.count) : nil
  }
}
