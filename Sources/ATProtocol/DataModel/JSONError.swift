/// Why a text is not JSON that AT Protocol allows, and at which byte.
package struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  package enum Reason: Equatable, Sendable {
    /// The text ends inside a value.
    case truncated
    /// Something follows the value.
    case trailingText
    /// A byte that cannot stand where it stands.
    case unexpectedByte
    /// The text is not UTF-8.
    case notUTF8
    /// A control character in a string that is not escaped.
    case controlCharacter
    /// A backslash with something behind it that JSON does not know.
    case malformedEscape
    /// Half of a surrogate pair, which is no character.
    case loneSurrogate
    /// A number with a leading zero, or without a digit where one must be.
    case malformedNumber
    /// An integer that does not fit in 64 bits, signed.
    case integerOutOfRange
    /// A number larger than any float.
    case numberOutOfRange
    /// A key that its object has already.
    case duplicateKey
    /// Arrays and objects nested deeper than DAG-CBOR is read.
    case tooDeep
    /// An object with a key `$link` that is not the text of a CID alone.
    case malformedLink
    /// An object with a key `$bytes` that is not base 64 alone.
    case malformedBytes
  }

  /// The broken rule.
  package let reason: Reason
  /// Where, in bytes from the start of the text.
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
      case .truncated: "the text ends inside a value"
      case .trailingText: "something follows the value"
      case .unexpectedByte: "a character that cannot stand there"
      case .notUTF8: "it is not UTF-8"
      case .controlCharacter: "a control character in a string"
      case .malformedEscape: "a malformed escape"
      case .loneSurrogate: "half of a surrogate pair"
      case .malformedNumber: "a malformed number"
      case .integerOutOfRange: "an integer outside 64 bits"
      case .numberOutOfRange: "a number that is too large"
      case .duplicateKey: "a key that occurs twice"
      case .tooDeep: "values nested too deeply"
      case .malformedLink: "a $link that is not a CID and nothing else"
      case .malformedBytes: "a $bytes that is not base64 and nothing else"
      }
    return "not valid JSON: \(what), at byte \(offset)"
  }
}
