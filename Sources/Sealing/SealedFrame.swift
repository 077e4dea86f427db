// offset  size  field
//      0     4  5D 2A 4D 18
//      4     4  u32: the length of what follows
//      8    16  the magic
//     24     4  u32 kind
//     28     …  by kind
//  last 8    8  XXH64 of all that
//
// Pieces and tables:
//     28     8  u64: how many pieces come before it
//     36     8  u64: how many bytes of the archive come before it
//     44     …  an age file

internal import Archive

/// A frame of a sealed archive (FORMAT 12): decoders of zstd pass over it.
struct SealedFrame {
  /// What a frame is.
  enum Kind: UInt32 {
    /// One of the two frames with the archive's identity.
    case keySlot = 1
    /// A piece of the archive.
    case piece = 2
    /// Where the pieces are.
    case table = 3
    /// A piece that is going to be written over another.
    case replacement = 4
  }

  /// The first four bytes, as a number.
  static let zstdMagic: UInt32 = 0x184d_2a5d
  /// How many bytes come before what the kind defines, and after it.
  static let headerLength = 28
  static let checksumLength = 8
  /// Where the age file of a piece, or of a table, begins.
  static let contentOffset = headerLength + 16
  /// The bytes that tell the frames from those of others.
  static let magic: [UInt8] = [
    0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x94, 0x92, 0xfe, 0xd3, 0x8c, 0xe1, 0xb6, 0xf5, 0x9e, 0x85,
  ]

  /// What it is; nil for a kind that is unknown here.
  let kind: Kind?
  /// Where it lies in the file.
  let range: Range<Int>
  /// How many pieces, and how many bytes of the archive, come before it.
  let number, plainOffset: UInt64
  private let checksum: UInt64

  /// Reads the frame that begins at `offset`, without testing its checksum; nil if none begins there
  /// or the file ends inside it.
  init?(_ file: Span<UInt8>, at offset: Int) {
    guard offset >= 0, offset <= file.count - Self.contentOffset - Self.checksumLength,
      file.u32(offset) == Self.zstdMagic, Self.hasMagic(at: offset + 8, in: file)
    else { return nil }
    let length = Int(file.u32(offset + 4)) + 8
    guard length >= Self.contentOffset + Self.checksumLength, length <= file.count - offset else {
      return nil
    }
    kind = Kind(rawValue: file.u32(offset + 24))
    range = offset..<offset + length
    number = file.u64(offset + Self.headerLength)
    plainOffset = file.u64(offset + Self.headerLength + 8)
    checksum = file.u64(offset + length - Self.checksumLength)
  }

  /// What the kind defines.
  var content: Range<Int> {
    range.lowerBound + Self.contentOffset..<range.upperBound - Self.checksumLength
  }

  /// Whether its checksum holds.
  func holds(in file: Span<UInt8>) -> Bool {
    XXH64.hash(file.extracting(range.lowerBound..<range.upperBound - Self.checksumLength))
      == checksum
  }

  /// A frame.
  ///
  /// - Parameters:
  ///   - kind: What it is.
  ///   - number: How many pieces come before it.
  ///   - plainOffset: How many bytes of the archive do.
  ///   - reserved: How many bytes of content there will be.
  ///   - fill: Appends them.
  static func bytes(
    _ kind: Kind, number: UInt64, plainOffset: UInt64, reserving reserved: Int,
    _ fill: (inout [UInt8]) throws -> Void
  ) rethrows -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(contentOffset + reserved + checksumLength)
    bytes.append(littleEndian: zstdMagic)
    bytes.append(littleEndian: UInt32(contentOffset + reserved + checksumLength - 8))
    bytes += magic
    bytes.append(littleEndian: kind.rawValue)
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: plainOffset)
    try fill(&bytes)
    precondition(bytes.count == contentOffset + reserved, "a frame of another length")
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }

  // MARK: Finding

  /// Whether a sealed archive begins so.
  static func isBeginning(_ file: Span<UInt8>) -> Bool {
    file.count >= headerLength && file.u32(0) == zstdMagic && hasMagic(at: 8, in: file)
  }

  private static func hasMagic(at offset: Int, in file: Span<UInt8>) -> Bool {
    offset <= file.count - magic.count
      && file.extracting(offset..<offset + magic.count).equals(magic.span)
  }

  /// The first frame that begins at or after `start`, by its magic; its checksum was not tested.
  static func next(in file: Span<UInt8>, from start: Int) -> SealedFrame? {
    var place = max(0, start)
    while let found = file.place(of: zstdMagic, from: place, before: file.count) {
      if let frame = SealedFrame(file, at: found) { return frame }
      place = found + 1
    }
    return nil
  }

  /// The last frame of a kind that begins at or after `start` and before `end`, and whose checksum
  /// holds.
  static func last(
    _ kind: Kind, in file: MappedFile, from start: Int, before end: Int
  ) -> SealedFrame? {
    var upper = min(end, file.count)
    while upper > start {
      let lower = max(start, upper - searched)
      let window = lower..<min(file.count, upper + headerLength)
      let places = file.withBytes(reading: [window]) { bytes in
        var (found, place) = ([Int](), lower)
        while let next = bytes.place(of: zstdMagic, from: place, before: upper) {
          if hasMagic(at: next + 8, in: bytes) { found.append(next) }
          place = next + 1
        }
        return found
      }
      for place in places.reversed() {
        let head = place..<min(file.count, place + contentOffset + checksumLength)
        let found = file.withBytes(reading: [head]) { SealedFrame($0, at: place) }
        guard let found, found.kind == kind else { continue }
        if file.withBytes(reading: [found.range], { found.holds(in: $0) }) { return found }
      }
      upper = lower
    }
    return nil
  }

  /// How many bytes are searched at a time from the back.
  private static let searched = 64 << 10
}
