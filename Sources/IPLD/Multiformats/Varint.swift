/// An unsigned integer of at most 63 bits, seven bits a byte, least significant group first.
///
/// The strict form of the [unsigned-varint](https://github.com/multiformats/unsigned-varint)
/// specification: at most nine bytes, and the shortest encoding only, so that every integer has
/// exactly one spelling.
package enum Varint {
  /// The most bytes one may take.
  package static let maximumLength = 9

  /// The result of reading one.
  package enum Outcome: Equatable, Sendable {
    /// An integer, 0 … 2^63 − 1.
    case value(UInt64)
    /// The bytes end inside it.
    case truncated
    /// It continues after nine bytes, so it needs more than 63 bits.
    case tooLong
    /// It ends in a zero group: a shorter encoding says the same.
    case notMinimal
  }

  /// Reads one at `offset`, and moves `offset` after it when it is a value.
  @inline(__always)
  package static func read(_ bytes: Span<UInt8>, at offset: inout Int) -> Outcome {
    guard offset < bytes.count else { return .truncated }
    let first = bytes[offset]
    if first < 0x80 {
      offset += 1
      return .value(UInt64(first))
    }
    return readLong(bytes, at: &offset)
  }

  /// The case of two bytes and more, kept out of line.
  private static func readLong(_ bytes: Span<UInt8>, at offset: inout Int) -> Outcome {
    var value: UInt64 = 0
    for position in 0..<maximumLength {
      guard offset + position < bytes.count else { return .truncated }
      let byte = bytes[offset + position]
      value |= UInt64(byte & 0x7f) << (7 * UInt64(position))
      if byte < 0x80 {
        if byte == 0 && position > 0 { return .notMinimal }
        offset += position + 1
        return .value(value)
      }
    }
    return .tooLong
  }

  /// How many bytes `value` takes.
  package static func length(of value: UInt64) -> Int {
    max(1, (70 - max(value, 1).leadingZeroBitCount) / 7)
  }

  /// Appends the encoding of `value`.
  ///
  /// - Precondition: `value` is below 2^63.
  package static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    precondition(value >> 63 == 0, "a varint holds 63 bits")
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }
}
