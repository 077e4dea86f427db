/// A point in time that serves as a name: the revision of a commit, and the key of most records.
///
/// A TID is a 64-bit integer written in 13 digits of base 32, most significant first
/// (<https://atproto.com/specs/tid>):
///
/// ```
/// bit   63       62 … 10                                   9 … 0
///       0        microseconds since 1970-01-01T00:00:00Z   clock identifier
/// ```
///
/// The digits `234567abcdefghijklmnopqrstuvwxyz` stand in the order of their ASCII codes, so texts
/// sort as their integers do. The first digit is one of `234567abcdefghij`: 13 digits would hold 65
/// bits. That rule of the syntax lets bit 63 be set although the layout says that it is 0; such a
/// TID is accepted, as it is everywhere in the network, and bit 63 is not part of its time.
///
/// A server chooses its revisions and a client its record keys: the time is a claim, not a fact.
public struct TID: Identifier {
  /// The length of every TID.
  package static let maximumLength = 13

  /// The name in messages of a TID.
  package static let kind = IdentifierError.Kind.tid

  /// The 13 digits.
  public let text: String

  /// Makes one of text that is known to be a TID.
  package init(checked text: String) { self.text = text }

  /// Writes an integer as a TID; every 64-bit integer has exactly one.
  package init(integer: UInt64) {
    var text = ""
    for place in (0..<Self.maximumLength).reversed() {
      let value = UInt8(truncatingIfNeeded: integer >> (5 * UInt64(place))) & 0x1F
      text.unicodeScalars.append(Unicode.Scalar(Self.digit(value)))
    }
    self.text = text
  }

  /// The integer that the digits spell.
  package var integer: UInt64 {
    text.utf8.reduce(0) { $0 << 5 | UInt64(Self.value(ofDigit: $1) ?? 0) }
  }

  /// The time, in microseconds since the beginning of 1970 in UTC: 53 bits.
  package var microseconds: UInt64 { (integer >> 10) & (1 << 53 - 1) }

  /// The number of the clock that told the time: 10 bits, chosen at random to keep clocks apart.
  package var clockIdentifier: UInt16 { UInt16(integer & 0x3FF) }
}

extension TID {
  /// The first rule that `bytes` break, or nil if they spell a TID.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    guard bytes.count == maximumLength else {
      return fault(.wrongLength(required: maximumLength), at: min(bytes.count, maximumLength))
    }
    for index in bytes.indices where value(ofDigit: bytes[index]) == nil {
      return fault(.forbiddenByte(bytes[index]), at: index)
    }
    return bytes[0] > UInt8(ascii: "j") ? fault(.overflow, at: 0) : nil
  }

  /// The value of a digit, or nil if the byte is not one.
  private static func value(ofDigit byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "2")...UInt8(ascii: "7"): byte - UInt8(ascii: "2")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 6
    default: nil
    }
  }

  /// The digit for a value below 32.
  private static func digit(_ value: UInt8) -> UInt8 {
    value < 6 ? UInt8(ascii: "2") + value : UInt8(ascii: "a") + value - 6
  }
}
