/// A name from AT Protocol whose syntax has been checked.
///
/// A value exists only if its text obeys the grammar of its type: there is one grammar per type,
/// ``fault(in:)``, and every initialiser goes through it. All grammars are subsets of ASCII, so
/// comparing two texts is comparing their bytes, and an offset in bytes is an offset in characters.
///
/// Syntax is all that is checked. Whether a name resolves, and to whom, is another question.
package protocol Identifier: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The name in messages of an identifier of this type.
  static var kind: IdentifierError.Kind { get }

  /// The length, in bytes, beyond which text is refused without being read.
  static var maximumLength: Int { get }

  /// The identifier as text.
  var text: String { get }

  /// The first rule that `bytes` break, or nil if they spell an identifier of this type.
  ///
  /// Takes linear time, looks at no more than ``maximumLength`` bytes and allocates nothing, so
  /// that the millions of keys in a large repository can be checked where they lie.
  static func fault(in bytes: Span<UInt8>) -> IdentifierError?

  /// Makes one of text that is known to be an identifier of this type.
  init(checked text: String)
}

extension Identifier {
  /// Parses an identifier.
  ///
  /// - Parameter text: The whole identifier, with nothing before or after it.
  /// - Throws: ``IdentifierError`` with the first rule that is broken. In a text that is made of
  ///   several identifiers its kind is that of the part in which it is broken, and its offset
  ///   counts from the start of the text.
  package init(_ text: String) throws(IdentifierError) {
    if let fault = Self.fault(in: text.utf8.span) { throw fault }
    self.init(checked: text)
  }

  /// The identifier as text.
  public var description: String { text }

  /// Orders identifiers by the bytes of their text.
  public static func < (left: Self, right: Self) -> Bool { left.text < right.text }

  /// Whether `bytes` spell an identifier of this type, found out without making one.
  package static func isValid(_ bytes: Span<UInt8>) -> Bool { fault(in: bytes) == nil }
}

// What the grammars share.
extension Identifier {
  /// A fault of this kind.
  static func fault(_ reason: IdentifierError.Reason, at offset: Int) -> IdentifierError {
    IdentifierError(kind: kind, reason: reason, offset: offset)
  }

  /// The fault of being empty or too long: the first question of a grammar, since it costs nothing.
  static func lengthFault(in bytes: Span<UInt8>) -> IdentifierError? {
    guard !bytes.isEmpty else { return fault(.empty, at: 0) }
    guard bytes.count <= maximumLength else {
      return fault(.tooLong(maximum: maximumLength), at: maximumLength)
    }
    return nil
  }
}
