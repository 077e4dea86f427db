internal import IPLD

// offset  size  field
//      0     4  50 2A 4D 18
//      4     4  u32: the length of what follows
//      8     …  bytes that count no more
// last 8     8  XXH64 of all that; if fewer than 8 bytes follow, they are zeros instead

/// Bytes that were damaged and count no more, made into a frame that every zstd decoder passes over
/// (FORMAT 4.3).
package struct VoidFrame: Equatable, Sendable {
  /// The first four bytes, as a number.
  package static let zstdMagic: UInt32 = 0x184d_2a50
  /// How many bytes come before the payload: no fewer can be voided.
  package static let headerLength = 8

  /// Where it lies.
  package let range: Range<Int>

  /// Reads the frame that begins at `offset`, and tests its checksum.
  ///
  /// - Throws: ``ArchiveError`` if there is none, or it does not hold.
  package init(_ file: Span<UInt8>, at offset: Int) throws(ArchiveError) {
    let place = UInt64(clamping: offset)
    guard offset >= 0, offset <= file.count - Self.headerLength,
      file.u32(offset) == Self.zstdMagic
    else { throw ArchiveError(.malformedFrame("it is not a void"), offset: place) }
    let count = Int(file.u32(offset + 4))
    guard count <= file.count - offset - Self.headerLength else {
      throw ArchiveError(.truncated, offset: place)
    }
    range = offset..<offset + Self.headerLength + count
    let tail = Self.tail(of: file.extracting(range))
    guard tail.span.equals(file.extracting(range.upperBound - tail.count..<range.upperBound)) else {
      throw ArchiveError(.damagedFrame("the checksum of a void does not hold"), offset: place)
    }
  }

  /// What has to be written into `bytes`, at these offsets, to make them one void.
  ///
  /// - Parameter bytes: At least ``headerLength`` bytes, and fewer than 4 GiB.
  package static func patches(for bytes: Span<UInt8>) -> [(offset: Int, bytes: [UInt8])] {
    var whole = bytes.array
    var header: [UInt8] = []
    header.append(littleEndian: zstdMagic)
    header.append(littleEndian: UInt32(whole.count - headerLength))
    whole.replaceSubrange(0..<headerLength, with: header)
    let tail = tail(of: whole.span)
    return [(0, header), (whole.count - tail.count, tail)]
  }

  /// The last bytes of a void: a checksum, or as many zeros as there is room for.
  private static func tail(of frame: Span<UInt8>) -> [UInt8] {
    let payload = frame.count - headerLength
    guard payload >= 8 else { return [UInt8](repeating: 0, count: payload) }
    var tail: [UInt8] = []
    tail.append(littleEndian: XXH64.hash(frame.extracting(0..<frame.count - 8)))
    return tail
  }
}
