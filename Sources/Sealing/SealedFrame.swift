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
//
// Behind the age file of a table, so that the end of a file tells what it is and where its last
// table begins:
//  - 28     4  u32: the length of the whole frame
//  - 24    16  the magic again

internal import Archive

/// A frame of a sealed archive (FORMAT 9): zstd decoders skip it.
struct SealedFrame {
  /// The kind of a frame.
  enum Kind: UInt32 {
    /// The archive's identity.
    case keySlot = 1
    /// A piece of the archive.
    case piece = 2
    /// Where the pieces are.
    case table = 3
    /// A piece that will be written over another.
    case replacement = 4
    /// Nothing: bytes of pieces that were lost.
    case void = 5
    /// Parity of the frames before it (FORMAT 9.6).
    case parity = 6

    /// How many bytes lie between its content and the checksum.
    fileprivate var trailerLength: Int { self == .table ? 4 + SealedFrame.magic.count : 0 }
  }

  /// The first four bytes, as a number.
  static let zstdMagic: UInt32 = 0x184d_2a5d
  /// How many bytes come before what the kind defines, and after it.
  static let headerLength = 28
  static let checksumLength = 8
  /// Where the age file of a piece, or of a table, begins.
  static let contentOffset = headerLength + 16
  /// How many bytes a frame without content has.
  static let emptyLength = contentOffset + checksumLength
  /// The bytes that tell the frames from those of others.
  static let magic: [UInt8] = [
    0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x94, 0x92, 0xfe, 0xd3, 0x8c, 0xe1, 0xb6, 0xf5, 0x9e, 0x85,
  ]

  /// Its kind; nil for an unknown one.
  let kind: Kind?
  /// Where it lies in the file.
  let range: Range<Int>
  /// How many pieces, and how many bytes of the archive, come before it.
  let number, plainOffset: UInt64

  /// Reads the frame that begins at `offset`, without testing its checksum; nil if none begins
  /// there or the file ends inside it.
  init?(_ file: Span<UInt8>, at offset: Int) {
    self.init(file, cutOffAt: offset)
    guard range.upperBound <= file.count else { return nil }
  }

  /// Reads the frame that begins at `offset`, which may be longer than what is left of the file.
  init?(_ file: Span<UInt8>, cutOffAt offset: Int) {
    guard offset >= 0, offset <= file.count - Self.emptyLength,
      file.u32(offset) == Self.zstdMagic, Self.hasMagic(at: offset + 8, in: file)
    else { return nil }
    let length = Int(file.u32(offset + 4)) + 8
    let kind = Kind(rawValue: file.u32(offset + 24))
    let shortest = Self.emptyLength + (kind?.trailerLength ?? 0)
    guard length >= shortest else { return nil }
    self.kind = kind
    range = offset..<offset + length
    number = file.u64(offset + Self.headerLength)
    plainOffset = file.u64(offset + Self.headerLength + 8)
  }

  /// Whether it may be a key frame: it is as long as one.
  var isKeySlot: Bool { kind == .keySlot && range.count == KeySlots.slotLength }

  /// What the kind defines.
  var content: Range<Int> {
    let end = range.upperBound - Self.checksumLength - (kind?.trailerLength ?? 0)
    return range.lowerBound + Self.contentOffset..<end
  }

  /// Whether its checksum matches, in a file in which the whole frame has been fetched.
  func holds(in file: Span<UInt8>) -> Bool {
    let end = range.upperBound - Self.checksumLength
    return XXH64.hash(file.extracting(range.lowerBound..<end)) == file.u64(end)
  }

  /// A frame.
  ///
  /// - Parameters:
  ///   - kind: Its kind.
  ///   - number: How many pieces come before it.
  ///   - plainOffset: How many bytes of the archive do.
  ///   - reserved: How many bytes of content there will be.
  ///   - fill: Appends them.
  static func bytes(
    _ kind: Kind, number: UInt64, plainOffset: UInt64, reserving reserved: Int,
    _ fill: (inout [UInt8]) throws -> Void
  ) rethrows -> [UInt8] {
    var bytes: [UInt8] = []
    let length = emptyLength + reserved + kind.trailerLength
    bytes.reserveCapacity(length)
    bytes.append(littleEndian: zstdMagic)
    bytes.append(littleEndian: UInt32(length - 8))
    bytes += magic
    bytes.append(littleEndian: kind.rawValue)
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: plainOffset)
    try fill(&bytes)
    precondition(bytes.count == contentOffset + reserved, "the frame has the wrong length")
    if kind == .table {
      bytes.append(littleEndian: UInt32(length))
      bytes += magic
    }
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }

  /// The frame of a piece with another number and place, and the right checksum if it is whole.
  static func movedPiece(_ frame: [UInt8], number: Int, plainOffset: Int, _ isWhole: Bool)
    -> [UInt8]
  {
    var head: [UInt8] = []
    head.append(littleEndian: UInt64(number))
    head.append(littleEndian: UInt64(plainOffset))
    var frame = frame
    frame.replaceSubrange(headerLength..<contentOffset, with: head)
    return isWhole ? withChecksum(frame) : frame
  }

  /// A frame with its checksum.
  static func withChecksum(_ frame: [UInt8]) -> [UInt8] {
    var bytes = Array(frame.dropLast(checksumLength))
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }

  /// A frame around the bytes of a group of parity.
  ///
  /// - Parameters:
  ///   - length: How many bytes the group has.
  ///   - group: Gives them piece by piece.
  static func parityFrame(
    _ length: Int, _ group: (_ take: (Span<UInt8>) throws -> Void) throws -> Void
  ) throws -> [UInt8] {
    try bytes(.parity, number: 0, plainOffset: 0, reserving: length) { bytes in
      try group { bytes.append($0) }
    }
  }

  /// Whether a frame around parity begins at a place.
  static func isParity(at place: Int, in file: MappedFile) -> Bool {
    guard place >= 0, place <= file.count else { return false }
    let head = place..<min(file.count, place + emptyLength)
    return file.withBytes(reading: [head]) { SealedFrame($0, at: place)?.kind == .parity }
  }

  /// Parity of the frames: a group of it is all that a frame holds.
  static let parity = LayerParity(before: contentOffset, behind: checksumLength)

  // MARK: Finding

  /// Whether these bytes begin a sealed archive.
  static func isBeginning(_ file: Span<UInt8>) -> Bool {
    file.count >= headerLength && file.u32(0) == zstdMagic && hasMagic(at: 8, in: file)
  }

  private static func hasMagic(at offset: Int, in file: Span<UInt8>) -> Bool {
    offset >= 0 && offset <= file.count - magic.count
      && file.extracting(offset..<offset + magic.count).equals(magic.span)
  }

  /// Whether a sealed archive ends so: with a table.
  static func isEnd(_ file: Span<UInt8>) -> Bool {
    hasMagic(at: file.count - checksumLength - magic.count, in: file)
  }

  /// The first frame that begins at or after `start` and before `end`, by its magic; its checksum
  /// was not tested.
  static func next(in file: MappedFile, from start: Int, before end: Int) -> SealedFrame? {
    var lower = start
    while lower < end {
      let upper = min(end, lower + searchedAtMost)
      let window = lower..<min(file.count, upper + emptyLength)
      let found = file.withBytes(reading: [window]) { next(in: $0, from: lower, before: upper) }
      if let found { return found }
      lower = upper
    }
    return nil
  }

  /// The first frame that begins at or after `start` and before `end`.
  static func next(in file: Span<UInt8>, from start: Int, before end: Int) -> SealedFrame? {
    var place = start
    while let found = file.place(of: zstdMagic, from: place, before: end) {
      if let frame = SealedFrame(file, at: found) { return frame }
      place = found + 1
    }
    return nil
  }

  /// The last table that ends at or before `end`, and whose checksum holds.
  static func lastTable(in file: MappedFile, before end: Int) -> SealedFrame? {
    if let table = table(endingAt: end, in: file) { return table }
    var (upper, searched) = (end, searchedAtLeast)
    while upper > KeySlots.length {
      let lower = max(KeySlots.length, upper - searched)
      searched = min(2 * searched, searchedAtMost)
      let window = lower..<min(file.count, upper + emptyLength)
      let places = file.withBytes(reading: [window]) { bytes in
        var (found, place) = ([Int](), lower)
        while let next = bytes.place(of: zstdMagic, from: place, before: upper) {
          if hasMagic(at: next + 8, in: bytes) { found.append(next) }
          place = next + 1
        }
        return found
      }
      for place in places.reversed() {
        if let table = table(at: place, in: file), table.range.upperBound <= end { return table }
      }
      upper = lower
    }
    return nil
  }

  private static func table(endingAt end: Int, in file: MappedFile) -> SealedFrame? {
    let trailer = end - checksumLength - magic.count - 4
    guard trailer >= KeySlots.length else { return nil }
    let length = file.withBytes(reading: [trailer..<end]) { bytes in
      hasMagic(at: trailer + 4, in: bytes) ? Int(bytes.u32(trailer)) : 0
    }
    guard length > 0, length <= end - KeySlots.length,
      let found = table(at: end - length, in: file), found.range.upperBound == end
    else { return nil }
    return found
  }

  private static func table(at place: Int, in file: MappedFile) -> SealedFrame? {
    let head = place..<min(file.count, place + emptyLength)
    guard let found = file.withBytes(reading: [head], { SealedFrame($0, at: place) }),
      found.kind == .table, file.withBytes(reading: [found.range], { found.holds(in: $0) })
    else { return nil }
    return found
  }

  /// How many bytes are searched at a time.
  private static let searchedAtLeast = 64 << 10
  private static let searchedAtMost = 4 << 20
}
