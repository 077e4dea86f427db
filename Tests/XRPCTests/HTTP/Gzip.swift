import TestSupport

/// Just enough of gzip (RFC 1951, RFC 1952) to send it.
enum Gzip {
  private static let header: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]

  /// Bytes in a wrapping, not compressed.
  static func wrap(_ bytes: [UInt8]) -> [UInt8] {
    var result = header
    var rest = bytes[...]
    repeat {
      let piece = rest.prefix(65_535)
      rest = rest.dropFirst(piece.count)
      let count = UInt16(piece.count)
      result += [rest.isEmpty ? 1 : 0]
      for number in [count, ~count] { result += [UInt8(number & 0xff), UInt8(number >> 8)] }
      result += piece
    } while !rest.isEmpty
    for number in [CRC32.of(bytes), UInt32(bytes.count)] {
      for shift in [0, 8, 16, 24] { result.append(UInt8(number >> UInt32(shift) & 0xff)) }
    }
    return result
  }

  /// More than this many zeros, in a hundred and sixtieth of that; without what gzip ends with.
  static func zeros(_ count: Int) -> [UInt8] {
    var result = header
    var held: UInt32 = 0
    var heldBits: UInt32 = 0
    func put(_ bits: UInt32, _ count: UInt32) {
      held |= bits << heldBits
      heldBits += count
      while heldBits >= 8 {
        result.append(UInt8(held & 0xff))
        held >>= 8
        heldBits -= 8
      }
    }
    // The last block, with fixed codes; a zero, and over and over again "258 bytes, as one back"
    // (codes begin with their highest bit).
    put(0b011, 3)
    put(0b0000_1100, 8)
    for _ in 0...(count / 258) { put(0b1010_0011, 8); put(0, 5) }
    put(0, 16)
    return result
  }
}
