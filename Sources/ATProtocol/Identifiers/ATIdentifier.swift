/// What names an account: its DID or its handle.
///
/// Lexicon calls this string format `at-identifier` (<https://atproto.com/specs/lexicon>, "String
/// Formats"). The two cannot be confused, because a DID starts with `did:` and a handle has no
/// colon.
public enum ATIdentifier: Identifier {
  /// The permanent name.
  case did(DID)
  /// The name for people, which may change hands.
  case handle(Handle)

  /// The most bytes in the longer of the two.
  package static let maximumLength = DID.maximumLength

  /// The name in messages of one that may be either of the two.
  package static let kind = IdentifierError.Kind.atIdentifier

  /// Makes one of text that is known to be a DID or a handle.
  package init(checked text: String) {
    self =
      text.hasPrefix(DID.scheme) ? .did(DID(checked: text)) : .handle(Handle(checked: text))
  }

  /// The DID as it is written, or the handle in lower case.
  package var text: String {
    switch self {
    case .did(let did): did.text
    case .handle(let handle): handle.text
    }
  }

  /// The first rule that `bytes` break, or nil if they spell a DID or a handle.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    return bytes.mismatch(withPrefix: DID.scheme) == nil
      ? DID.fault(in: bytes) : Handle.fault(in: bytes)
  }
}
