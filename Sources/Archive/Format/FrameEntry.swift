internal import IPLD

// offset  size  field
//      0     8  u64 offset of the frame
//      8     8  u64 XXH64 of its stored bytes
//     16     4  u32 ordinal, less the segment's base, of the first section that has bytes in it
//     20     4  u32 stored length

/// One data frame, as the frame table of an index segment describes it (FORMAT 4.1).
package struct FrameEntry: Equatable, Sendable {
  /// How many bytes one takes in the table.
  package static let length = 24

  /// Where the frame begins.
  package let offset: UInt64
  /// The XXH64 of its stored bytes.
  package let checksum: UInt64
  /// The ordinal of the first section that has bytes in it.
  package let firstOrdinal: UInt64
  /// How many bytes it takes in the file.
  package let storedLength: UInt32

  /// Where it ends; saturated, because an entry may say anything.
  package var end: UInt64 { offset.addingSaturated(UInt64(storedLength)) }

  /// The bytes it takes, as far as numbers go.
  var range: Range<Int> {
    let start = Int(clamping: offset)
    return start..<max(start, Int(clamping: end))
  }
}

extension FrameEntry {
  /// Reads the entry at `offset` of a segment that begins with the ordinal `base`.
  ///
  /// - Precondition: it lies within `file`, and `base` is below 2^62, as that of every segment.
  @inline(__always)
  package init(_ file: Span<UInt8>, at offset: Int, base: UInt64) {
    self.offset = file.u64(offset)
    checksum = file.u64(offset + 8)
    firstOrdinal = base + UInt64(file.u32(offset + 16))
    storedLength = file.u32(offset + 20)
  }

  /// Appends the entry as it stands in a segment that begins with the ordinal `base`.
  package func append(base: UInt64, to bytes: inout [UInt8]) {
    bytes.append(littleEndian: offset)
    bytes.append(littleEndian: checksum)
    bytes.append(littleEndian: UInt32(truncatingIfNeeded: firstOrdinal - base))
    bytes.append(littleEndian: storedLength)
  }
}
