internal import IPLD

// offset  size  field
//      0     4  50 2A 4D 18
//      4     4  u32: the length of what follows
//      8     …  bytes that count no more
// last 8     8  XXH64 of all that; if fewer than 8 bytes follow, they are zeros instead

/// Bytes that were damaged and no longer count, made into a frame that every zstd decoder passes
/// over (FORMAT 4.3): a void.
extension SkippableFrame {
  /// The first four bytes of a void, as a number.
  static let voidMagic: UInt32 = 0x184d_2a50
  /// How many bytes of a void come before the payload: no fewer can be voided.
  static let voidHeaderLength = 8

  /// Where the void lies that begins at `offset`, its checksum tested.
  ///
  /// - Throws: ``ArchiveError`` if there is none, or it does not hold.
  static func void(in file: Span<UInt8>, at offset: Int) throws(ArchiveError) -> Range<Int> {
    let place = UInt64(clamping: offset)
    guard offset >= 0, offset <= file.count - voidHeaderLength, file.u32(offset) == voidMagic else {
      throw ArchiveError(.malformedFrame("it is not a void"), offset: place)
    }
    let count = Int(file.u32(offset + 4))
    guard count <= file.count - offset - voidHeaderLength else {
      throw ArchiveError(.truncated, offset: place)
    }
    let range = offset..<offset + voidHeaderLength + count
    let tail = voidTail(of: file.extracting(range))
    guard tail.span.equals(file.extracting(range.upperBound - tail.count..<range.upperBound)) else {
      throw ArchiveError(.damagedFrame("the checksum of a void does not match"), offset: place)
    }
    return range
  }

  /// Whether bytes that are not a frame were a void, whose magic or whose checksum does not hold.
  static func wasVoid(_ range: Range<Int>, in file: Span<UInt8>) -> Bool {
    guard file.firstWord(at: range.lowerBound) != voidMagic else { return true }
    guard 2 * voidHeaderLength...DataFrame.longest ~= range.count else { return false }
    var whole = file.array(range)
    var magic: [UInt8] = []
    magic.append(littleEndian: voidMagic)
    whole.replaceSubrange(0..<magic.count, with: magic)
    return voidTail(of: whole.span).elementsEqual(whole.suffix(8))
  }

  /// What has to be written into `bytes`, at these offsets, to make them one void.
  ///
  /// - Parameter bytes: At least ``voidHeaderLength`` bytes, and fewer than 4 GiB.
  static func voidPatches(for bytes: Span<UInt8>) -> [(offset: Int, bytes: [UInt8])] {
    var whole = bytes.array
    var header: [UInt8] = []
    header.append(littleEndian: voidMagic)
    header.append(littleEndian: UInt32(whole.count - voidHeaderLength))
    whole.replaceSubrange(0..<voidHeaderLength, with: header)
    let tail = voidTail(of: whole.span)
    return [(0, header), (whole.count - tail.count, tail)]
  }

  /// The last bytes of a void: a checksum, or as many zeros as there is room for.
  private static func voidTail(of frame: Span<UInt8>) -> [UInt8] {
    let payload = frame.count - voidHeaderLength
    guard payload >= 8 else { return [UInt8](repeating: 0, count: payload) }
    var tail: [UInt8] = []
    tail.append(littleEndian: XXH64.hash(frame.extracting(0..<frame.count - 8)))
    return tail
  }
}
