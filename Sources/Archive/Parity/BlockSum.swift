/// The checksum of a block that parity protects: 64 bits, by which the block is also found again
/// where bytes before it were inserted or lost (FORMAT 4.5).
///
/// The lower half is the lower half of the XXH64 of the block; the upper half that of a hash of
/// its first 64 bytes which can be rolled from one place of a file to the next.
enum BlockSum {
  /// The checksum of a block.
  @inline(__always)
  static func of(_ block: Span<UInt8>) -> UInt64 {
    UInt64(RollingHash(block).upperHalf) << 32 | XXH64.hash(block) & 0xffff_ffff
  }
}

/// A hash of 64 bytes that follow one another, for searching: the next one is made of it in a few
/// steps.
///
/// It is the polynomial of the bytes, the first with the highest power, at one odd number modulo
/// 2^64; its upper 32 bits are used.
struct RollingHash {
  /// How many bytes are hashed.
  static let length = 64
  private static let base: UInt64 = 0x9e37_79b9_7f4a_7c15
  /// The power with which a byte leaves.
  private static let power = (0..<length).reduce(1 as UInt64) { power, _ in power &* base }
  private let leaving = Self.power

  private var value: UInt64 = 0

  /// The hash of the first 64 bytes.
  ///
  /// - Precondition: There are this many.
  @inline(__always)
  init(_ bytes: Span<UInt8>, from start: Int = 0) {
    for place in start..<start + Self.length {
      value = value &* Self.base &+ UInt64(bytes[place])
    }
  }

  var upperHalf: UInt32 { UInt32(truncatingIfNeeded: value >> 32) }

  /// Goes on by one byte.
  @inline(__always)
  mutating func roll(out: UInt8, in next: UInt8) {
    value = value &* Self.base &+ UInt64(next) &- leaving &* UInt64(out)
  }
}
