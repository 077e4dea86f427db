import TestSupport

/// gzip (RFC 1952) without a compressor: bytes as they are, and zeros as densely as deflate can
/// have them.
enum Gzip {
  private static let header: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]

  /// Bytes in stored blocks (RFC 1951, section 3.2.4).
  static func store(_ bytes: [UInt8]) -> [UInt8] {
    var result = header
    var start = 0
    repeat {
      let end = min(start + 0xffff, bytes.count)
      let length = UInt16(end - start)
      result.append(end == bytes.count ? 1 : 0)
      for value in [length, ~length] { result += [UInt8(value & 0xff), UInt8(value >> 8)] }
      result += bytes[start..<end]
      start = end
    } while start < bytes.count
    for value in [CRC32.of(bytes), UInt32(truncatingIfNeeded: bytes.count)] {
      for shift in stride(from: 0, to: 32, by: 8) {
        result.append(UInt8(value >> UInt32(shift) & 0xff))
      }
    }
    return result
  }

  /// Something that grows to about this many zeros, a thousand times its length.
  ///
  /// A block with codes of its own (RFC 1951, section 3.2.7) in which "258 bytes as before" takes
  /// two bits. The checksum at the end is wrong: a reader that gets there has read too much
  /// already.
  static func bomb(of count: Int) -> [UInt8] {
    var bits = BitWriter(header)
    bits.write(1, 1)
    bits.write(2, 2)
    // Lengths of codes are given for the literals 0 to 285 and the distance 0; four codes are in
    // use: 0, 256 and 285 with two bits, or one, and the distance with one.
    bits.write(286 - 257, 5)
    bits.write(0, 5)
    bits.write(18 - 4, 4)
    // The code lengths' own lengths, in the order 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1 15:
    // 18, 2 and 1 are used.
    for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1] {
      bits.write([18: 1, 2: 2, 1: 2][symbol] ?? 0, 3)
    }
    // Canonical codes: 18 is 0, 1 is 10, 2 is 11; the first bit of a code goes first.
    let run = { (bits: inout BitWriter, zeros: Int) in
      bits.write(0, 1)
      bits.write(UInt32(zeros - 11), 7)
    }
    let one = { (bits: inout BitWriter) in
      bits.write(1, 1)
      bits.write(0, 1)
    }
    let two = { (bits: inout BitWriter) in
      bits.write(1, 1)
      bits.write(1, 1)
    }
    two(&bits)  // literal 0: code 10
    run(&bits, 138)
    run(&bits, 117)
    two(&bits)  // end of block: code 11
    run(&bits, 28)
    one(&bits)  // length 258: code 0
    one(&bits)  // distance 1: code 0
    bits.write(0b01, 2)  // a zero
    bits.writeZeros(count / 258 * 2)
    bits.write(0b11, 2)
    return bits.bytes + [UInt8](repeating: 0, count: 8)
  }

  /// Bits, the lowest of each byte first.
  private struct BitWriter {
    private(set) var bytes: [UInt8]
    private var used = 8

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func write(_ value: UInt32, _ count: Int) {
      for place in 0..<count {
        if used == 8 {
          bytes.append(0)
          used = 0
        }
        bytes[bytes.count - 1] |= UInt8(value >> UInt32(place) & 1) << UInt8(used)
        used += 1
      }
    }

    /// Writes zeros, all whole bytes of them at once.
    mutating func writeZeros(_ count: Int) {
      let first = min(count, 8 - used)
      write(0, first)
      bytes += [UInt8](repeating: 0, count: (count - first) / 8)
      write(0, (count - first) % 8)
    }
  }
}
