internal import IPLD

/// Puts the parts of an index segment's frame into bytes, in pieces (FORMAT 4.1): the header, the fan-out, the entries, the frame
/// table, the checksum.
struct SegmentEncoder: ~Copyable {
  private static let pieceLength = 1 << 20

  private let base: UInt64
  private var piece: [UInt8]
  private var hash = XXH64.Stream()

  /// Begins a segment.
  ///
  /// - Throws: ``ArchiveError`` if it is longer than a frame can be.
  init(fanOutBits: Int, base: UInt64, count: Int, frameCount: Int) throws(ArchiveError) {
    let length = IndexSegment.length(
      fanOutBits: fanOutBits, count: count, frameCount: frameCount)
    guard
      var piece = SkippableFrame.header(
        .indexSegment, payloadLength: length - SkippableFrame.minimumLength)
    else { throw ArchiveError(.tooManySections) }
    piece.reserveCapacity(min(length, Self.pieceLength + 64))
    piece.append(contentsOf: [UInt8(fanOutBits), 0, 0, 0])
    piece.append(littleEndian: base)
    piece.append(littleEndian: UInt32(count))
    piece.append(littleEndian: UInt32(frameCount))
    self.base = base
    self.piece = piece
  }

  mutating func append(fanOut: [UInt32], _ sink: (Span<UInt8>) throws -> Void) throws {
    for end in fanOut {
      piece.append(littleEndian: end)
      if piece.count >= Self.pieceLength { try drain(sink) }
    }
  }

  /// Appends an entry: the short key in the upper half, the relative ordinal in the lower.
  @inline(__always)
  mutating func append(entry: UInt64, _ sink: (Span<UInt8>) throws -> Void) throws {
    piece.append(littleEndian: entry << 32 | entry >> 32)
    if piece.count >= Self.pieceLength { try drain(sink) }
  }

  mutating func append(frame: FrameEntry, _ sink: (Span<UInt8>) throws -> Void) throws {
    frame.append(base: base, to: &piece)
    if piece.count >= Self.pieceLength { try drain(sink) }
  }

  /// Hands out what is left, and answers with the checksum.
  mutating func finish(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    try drain(sink)
    let checksum = hash.finish()
    piece.append(littleEndian: checksum)
    try sink(piece.span)
    return checksum
  }

  private mutating func drain(_ sink: (Span<UInt8>) throws -> Void) throws {
    var piece: [UInt8] = []
    swap(&piece, &self.piece)
    hash.update(piece.span)
    try sink(piece.span)
    piece.removeAll(keepingCapacity: true)
    swap(&piece, &self.piece)
  }
}
