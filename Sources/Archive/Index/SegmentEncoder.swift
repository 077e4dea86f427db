/// Puts an index segment's frame into bytes, in pieces (FORMAT 4.1): the header, the fan-out, the
/// entries, the frame table, the checksum.
///
/// The entries are passed through twice, in their order: to count them, and to write them. In
/// memory are the fan-out and, in the packed form, the marks, three bits an entry at most.
struct SegmentEncoder: ~Copyable {
  static let pieceLength = 1 << 20

  let layout: SegmentLayout
  var piece: [UInt8]
  var bits = BitBlocks()
  private var hash = XXH64.Stream()

  init(_ layout: SegmentLayout) throws(ArchiveError) {
    guard
      var piece = SkippableFrame.header(
        SkippableFrame.indexSegment, payloadLength: layout.length - SkippableFrame.minimumLength)
    else { throw ArchiveError(.tooManySections) }
    piece.reserveCapacity(min(layout.length, Self.pieceLength + 64))
    piece.append(contentsOf: [UInt8(layout.fanOutBits), layout.form.rawValue, 0, 0])
    piece.append(littleEndian: layout.base)
    piece.append(littleEndian: UInt32(layout.count))
    piece.append(littleEndian: UInt32(layout.frameCount))
    self.layout = layout
    self.piece = piece
  }

  @inline(__always)
  mutating func append(_ entry: IndexEntry) {
    switch layout.form {
    case .wide:
      piece.append(littleEndian: UInt32(truncatingIfNeeded: entry.key >> 32))
      piece.append(littleEndian: entry.ordinal)
    case .packed:
      let rest = UInt64(layout.keyBits - layout.bucketBits)
      let key = entry.key >> UInt64(64 - layout.keyBits) & (1 << rest - 1)
      bits.append(
        key << UInt64(layout.ordinalBits) | UInt64(entry.ordinal), count: layout.entryBits,
        to: &piece)
    }
  }

  /// Hands out what is left, and returns the checksum.
  mutating func finish(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    try drain(sink)
    let checksum = hash.finish()
    piece.append(littleEndian: checksum)
    try sink(piece.span)
    return checksum
  }

  mutating func drain(_ sink: (Span<UInt8>) throws -> Void) throws {
    var piece: [UInt8] = []
    swap(&piece, &self.piece)
    hash.update(piece.span)
    try sink(piece.span)
    piece.removeAll(keepingCapacity: true)
    swap(&piece, &self.piece)
  }

  /// How many entries there are below each bound.
  struct Counts {
    private let layout: SegmentLayout
    /// How many have these leading bits or less.
    private(set) var fanOut: [UInt32] = []
    /// For each bucket a one for each of its entries, and a zero.
    private(set) var marks: [UInt8] = []
    private var bits = BitBlocks()
    private var bucket = 0
    private var count = 0

    init(_ layout: SegmentLayout) {
      self.layout = layout
      fanOut.reserveCapacity(1 << layout.fanOutBits)
      marks.reserveCapacity(layout.entriesOffset - layout.marksOffset)
    }

    @inline(__always)
    mutating func add(_ entry: IndexEntry) throws(ArchiveError) {
      let leading = entry.key.leading(layout.fanOutBits)
      while fanOut.count < leading { fanOut.append(UInt32(count)) }
      let bucket = entry.key.leading(layout.bucketBits)
      guard fanOut.count == leading, bucket >= self.bucket, count < layout.count else {
        throw ArchiveError(.damagedIndex("its entries are not in order"))
      }
      if layout.form == .packed {
        if bucket > self.bucket { bits.appendZeros(bucket - self.bucket, to: &marks) }
        bits.append(1, count: 1, to: &marks)
        self.bucket = bucket
      }
      count += 1
    }

    mutating func finish() throws(ArchiveError) {
      guard count == layout.count else {
        throw ArchiveError(.damagedIndex("it does not have the number of entries that it says"))
      }
      while fanOut.count < 1 << layout.fanOutBits { fanOut.append(UInt32(count)) }
      guard layout.form == .packed else { return }
      bits.appendZeros(1 << layout.bucketBits - bucket, to: &marks)
      bits.finish(&marks)
    }
  }
}
