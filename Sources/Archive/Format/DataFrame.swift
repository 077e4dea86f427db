// offset  size     field
//      0     4     28 B5 2F FD
//      4     1     descriptor: 24, 64 or A4: single segment, content checksum, no dictionary;
//                  how long the next field is
//      5     1|2|4 content size: up to 255; 256 … 65,791, less 256; beyond that
//      …     …     blocks, each with three bytes in front: bit 0 last, bits 1–2 kind (0 raw,
//                  1 RLE, 2 compressed), the rest size
//  last 4    4     the lower half of the XXH64 of the content

/// Where a data frame lies and how long it is, read from its header and the headers of its blocks
/// (FORMAT 3.1).
///
/// Reading one proves that the bytes are one zstd frame in the one header form of the format. It
/// does not prove that the content is what was written: that takes a checksum.
package struct DataFrame: Equatable, Sendable {
  /// The first four bytes, as a number.
  package static let zstdMagic: UInt32 = 0xfd2f_b528
  /// The most content a block may have, by RFC 8878.
  package static let blockContent = 1 << 17

  /// Where it begins in the file.
  package let offset: Int
  /// How many bytes come before its first block.
  package let headerLength: Int
  /// How many bytes it decompresses to, as it says itself; 1 … ``ArchiveLimits/frameContent``.
  package let contentSize: Int
  /// Its length, all of it.
  package let length: Int
  /// Whether all of its blocks are raw, so that the content lies in the file as it is.
  package let isRaw: Bool
  /// Whether it ends before its last block or its checksum does, or its header or those of its
  /// blocks cannot be, so that it does not hold.
  let isTorn: Bool

  /// Where it ends.
  package var end: Int { offset + length }
  /// Where it lies in the file.
  package var range: Range<Int> { offset..<end }

  /// Reads the frame that begins at `offset` and must end by `limit`.
  ///
  /// With `mayBeTorn` that may be anywhere after the header of the first block, and what follows a
  /// block that can be may be anything: the blocks before it can still be read.
  ///
  /// - Throws: ``ArchiveError`` for another header form, a block that cannot be, or bytes that end
  ///   first.
  package init(
    _ file: Span<UInt8>, at offset: Int, limit: Int, mayBeTorn: Bool = false
  ) throws(ArchiveError) {
    let limit = min(limit, file.count)
    (headerLength, contentSize) = try Self.readHeader(file, at: offset, limit: limit)
    self.offset = offset
    // Longer than raw, with every byte of content part of a magic to split, is a frame no writer
    // makes; the bound keeps a chain of empty blocks from being followed through the whole file.
    let stop = min(limit, offset + Self.maximumLength(contentSize: contentSize))
    let first = offset + headerLength
    var place = first
    var rawContent = 0
    var onlyRaw = true
    var isLast = false
    do throws(ArchiveError) {
      while !isLast {
        let block = try Self.block(at: place, limit: stop, ofFrameAt: offset, in: file)
        place = block.end
        isLast = block.isLast
        if block.isRaw { rawContent += block.size } else { onlyRaw = false }
      }
    } catch {
      guard mayBeTorn, place > first else { throw error }
      (length, isRaw, isTorn) = (stop - offset, false, true)
      return
    }
    isTorn = place > stop - 4
    guard !isTorn || mayBeTorn else { throw ArchiveError(.truncated, at: offset) }
    guard !onlyRaw || isTorn || rawContent == contentSize else {
      throw ArchiveError(
        .malformedFrame("its blocks do not add up to its content size"), at: offset)
    }
    length = min(place + 4, stop) - offset
    isRaw = onlyRaw && place <= stop && rawContent == contentSize
  }

  /// A frame of which only the place is known, and how much content it has; 0 if that is not known.
  init(remainsIn range: Range<Int>, contentSize: Int) {
    (offset, length) = (range.lowerBound, range.count)
    headerLength = Self.headerLength(contentSize: contentSize)
    self.contentSize = contentSize
    (isRaw, isTorn) = (false, true)
  }

  /// The block whose header is at `place`: its size, whether its content is stored as it is,
  /// whether it is the last, and where it ends, which may be beyond `limit`.
  private static func block(
    at place: Int, limit: Int, ofFrameAt offset: Int, in file: Span<UInt8>
  ) throws(ArchiveError) -> (size: Int, isRaw: Bool, isLast: Bool, end: Int) {
    guard place <= limit - 3 else { throw ArchiveError(.truncated, at: offset) }
    let header = blockHeader(at: place, in: file)
    let (size, kind) = (Int(header >> 3), header >> 1 & 3)
    guard size <= blockContent else {
      throw ArchiveError(.malformedFrame("a block is too long"), at: place)
    }
    guard kind < 3 else {
      throw ArchiveError(.malformedFrame("a block is of an unknown type"), at: place)
    }
    // A repeated byte is stored once.
    return (size, kind == 0, header & 1 == 1, place + 3 + (kind == 1 ? 1 : size))
  }

  /// The most bytes that any frame may take.
  static let longest = maximumLength(contentSize: ArchiveLimits.frameContent)

  /// The most bytes that a frame with this much content may take.
  package static func maximumLength(contentSize: Int) -> Int {
    9 + contentSize + 3 * (contentSize / blockContent + contentSize / ArchiveMagic.length + 2) + 4
  }

  static func readHeader(_ file: Span<UInt8>, at offset: Int, limit: Int)
    throws(ArchiveError) -> (length: Int, contentSize: Int)
  {
    let place = UInt64(clamping: offset)
    guard offset >= 0, offset <= limit - 6 else { throw ArchiveError(.truncated, offset: place) }
    guard file.u32(offset) == zstdMagic else {
      throw ArchiveError(.malformedFrame("no zstd frame begins here"), offset: place)
    }
    let length =
      switch file[offset + 4] {
      case 0x24: 6
      case 0x64: 7
      case 0xa4: 9
      default:
        throw ArchiveError(
          .malformedFrame("its header has a form that the format does not allow"), offset: place)
      }
    guard offset <= limit - length else { throw ArchiveError(.truncated, offset: place) }
    let contentSize =
      switch length {
      case 6: Int(file[offset + 5])
      case 7: 256 + Int(file.u16(offset + 5))
      default: Int(file.u32(offset + 5))
      }
    guard contentSize > 0, contentSize <= ArchiveLimits.frameContent else {
      throw ArchiveError(
        .malformedFrame(
          "its content size is \(contentSize), not 1 to \(ArchiveLimits.frameContent)"),
        offset: place)
    }
    guard length == headerLength(contentSize: contentSize) else {
      throw ArchiveError(.malformedFrame("its content size is not minimal"), offset: place)
    }
    return (length, contentSize)
  }

  /// How long a header may be.
  static let headerLengths = [6, 7, 9]

  /// How long the header is for this much content.
  package static func headerLength(contentSize: Int) -> Int {
    contentSize <= 255 ? 6 : contentSize <= 65_791 ? 7 : 9
  }

  /// Appends the header for this much content.
  package static func appendHeader(contentSize: Int, to bytes: inout [UInt8]) {
    bytes.append(littleEndian: zstdMagic)
    switch headerLength(contentSize: contentSize) {
    case 6:
      bytes.append(0x24)
      bytes.append(UInt8(truncatingIfNeeded: contentSize))
    case 7:
      bytes.append(0x64)
      bytes.append(littleEndian: UInt16(truncatingIfNeeded: contentSize - 256))
    default:
      bytes.append(0xa4)
      bytes.append(littleEndian: UInt32(truncatingIfNeeded: contentSize))
    }
  }
}
