/// Why a text is not JSON that AT Protocol allows, and at which byte.
package struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  package enum Reason: String, Sendable {
    /// The text ends inside a value.
    case truncated = "the text ends inside a value"
    /// Something follows the value.
    case trailingText = "text follows the value"
    /// A byte that cannot stand where it stands.
    case unexpectedByte = "an unexpected character"
    /// The text is not UTF-8.
    case notUTF8 = "it is not UTF-8"
    /// A control character in a string that is not escaped.
    case controlCharacter = "a control character in a string"
    /// A backslash with something after it that JSON does not know.
    case malformedEscape = "a malformed escape"
    /// Half of a surrogate pair, which is not a character.
    case loneSurrogate = "half of a surrogate pair"
    /// A number with a leading zero, or without a digit where one must be.
    case malformedNumber = "a malformed number"
    /// An integer that does not fit in 64 bits, signed.
    case integerOutOfRange = "an integer outside 64 bits"
    /// A number larger than any float.
    case numberOutOfRange = "a number that is too large"
    /// A key that its object has already.
    case duplicateKey = "a key that occurs twice"
    /// Arrays and objects nested deeper than DAG-CBOR is read.
    case tooDeep = "values nested too deeply"
    /// An object with a key `$link` that is not the text of a CID alone.
    case malformedLink = "a $link that is not a CID and nothing else"
    /// An object with a key `$bytes` that is not base 64 alone.
    case malformedBytes = "a $bytes that is not base64 and nothing else"
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

  /// The message for people.
  package var description: String {
    "not valid JSON: \(reason.rawValue), at byte \(offset)"
  }
}
