/// Bits in a row, in blocks of 16 bytes, as the packed form of an index segment has them (FORMAT
/// 4.1).
///
/// A block holds 127 bits, from the lowest of its first byte on. The highest bit of its last byte
/// is clear: so no 16 bytes in a row are without one below 80, and the magic cannot occur, whatever
/// the bits are.
///
/// Blocks are read by the static functions; a value puts bits into them.
struct BitBlocks {
  /// How many bytes a block has.
  static let blockLength = 16
  /// How many bits it holds.
  static let bitsPerBlock = 127

  /// How many bytes this many bits take.
  static func length(bits: Int) -> Int {
    (bits + bitsPerBlock - 1) / bitsPerBlock * blockLength
  }

  /// In which bytes of the blocks some bits are.
  static func place(of bits: Range<Int>) -> Range<Int> {
    bits.lowerBound / bitsPerBlock * blockLength..<length(bits: bits.upperBound)
  }

  /// The `count` bits from `place` on, the first the lowest, in blocks that begin at `start`.
  ///
  /// - Precondition: they lie within the blocks, and are between 1 and 63.
  @inline(__always)
  static func bits(_ count: Int, at place: Int, in bytes: Span<UInt8>, from start: Int) -> UInt64 {
    let (block, first) = place.quotientAndRemainder(dividingBy: bitsPerBlock)
    let offset = start + block * blockLength
    let high = bytes.u64(offset + 8)
    // Shifts by 64 and more give zero.
    var bits =
      first < 64
      ? bytes.u64(offset) >> UInt64(first) | high << UInt64(64 - first)
      : high >> UInt64(first - 64)
    let held = bitsPerBlock - first
    if held < count { bits |= bytes.u64(offset + blockLength) << UInt64(held) }
    return bits & (1 << UInt64(count) - 1)
  }

  private var low: UInt64 = 0
  private var high: UInt64 = 0
  private var used = 0

  /// Adds the lowest `count` bits of a number, the lowest first.
  ///
  /// - Precondition: there are at most 63, and the others are clear.
  @inline(__always)
  mutating func append(_ bits: UInt64, count: Int, to bytes: inout [UInt8]) {
    let room = Self.bitsPerBlock - used
    if count < room {
      put(bits, count)
    } else {
      put(bits & (1 << UInt64(room) - 1), room)
      flush(to: &bytes)
      put(bits >> UInt64(room), count - room)
    }
  }

  /// Adds clear bits.
  mutating func appendZeros(_ count: Int, to bytes: inout [UInt8]) {
    var rest = count
    while rest > 0 {
      let part = min(rest, 63)
      append(0, count: part, to: &bytes)
      rest -= part
    }
  }

  /// Ends the last block.
  mutating func finish(_ bytes: inout [UInt8]) {
    if used > 0 { flush(to: &bytes) }
  }

  @inline(__always)
  private mutating func put(_ bits: UInt64, _ count: Int) {
    // Shifts by 64 and more give zero.
    if used < 64 {
      low |= bits << UInt64(used)
      high |= bits >> UInt64(64 - used)
    } else {
      high |= bits << UInt64(used - 64)
    }
    used += count
  }

  private mutating func flush(to bytes: inout [UInt8]) {
    bytes.append(littleEndian: low)
    bytes.append(littleEndian: high)
    (low, high, used) = (0, 0, 0)
  }
}
