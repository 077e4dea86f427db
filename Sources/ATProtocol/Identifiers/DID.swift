/// The permanent name of an account: a decentralised identifier, such as `did:plc:` and 24
/// characters.
///
/// Its rules (<https://atproto.com/specs/did>, "AT Protocol DID Identifier Syntax"):
///
/// - `did:`, a method of one or more lower-case letters, `:`, and an identifier that the method
///   defines;
/// - in the identifier, letters, digits and `.`, `_`, `:`, `%`, `-`, and no `:` or `%` at its end;
/// - no path, query or fragment;
/// - at most 2048 bytes.
///
/// Any method is accepted, since a repository may mention DIDs of methods that nothing here
/// resolves. What follows a `%` is not looked at, as the specification allows. Case matters
/// throughout.
public struct DID: Identifier {
  /// The most bytes in a DID ("an initial hard limit of 2048 characters").
  package static let maximumLength = 2048

  /// The name in messages of a DID.
  package static let kind = IdentifierError.Kind.did

  /// The DID as text.
  public let text: String

  /// Makes one of text that is known to be a DID.
  package init(checked text: String) { self.text = text }

  /// The name of the method, such as `plc` or `web`.
  package var method: Substring {
    text.dropFirst(Self.scheme.count).prefix { $0 != ":" }
  }

  /// What follows the method: the part that the method gives a meaning to.
  package var methodSpecificID: Substring {
    text.dropFirst(Self.scheme.count + method.count + 1)
  }

  /// What every DID starts with.
  static let scheme = "did:"
}

extension DID {
  /// The first rule that `bytes` break, or nil if they spell a DID.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    if let offset = bytes.mismatch(withPrefix: scheme) { return fault(.missingScheme, at: offset) }

    let colon = UInt8(ascii: ":")
    let methodStart = scheme.utf8.count
    let methodEnd = bytes.end(before: colon, from: methodStart)
    guard methodEnd > methodStart else { return fault(.emptySegment, at: methodStart) }
    for index in methodStart..<methodEnd where !bytes[index].isASCIILowercaseLetter {
      return fault(.forbiddenByte(bytes[index]), at: index)
    }

    guard methodEnd < bytes.count else { return fault(.tooFewSegments(minimum: 3), at: methodEnd) }
    let identifierStart = methodEnd + 1
    guard identifierStart < bytes.count else { return fault(.emptySegment, at: identifierStart) }
    for index in identifierStart..<bytes.count where !isAllowed(bytes[index]) {
      return fault(.forbiddenByte(bytes[index]), at: index)
    }
    let last = bytes[bytes.count - 1]
    guard last != colon, last != UInt8(ascii: "%") else {
      return fault(.forbiddenEnd(last), at: bytes.count - 1)
    }
    return nil
  }

  /// Whether `byte` may stand in the part that belongs to the method.
  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "%"),
      UInt8(ascii: "-"):
      true
    default: byte.isASCIIAlphanumeric
    }
  }
}
