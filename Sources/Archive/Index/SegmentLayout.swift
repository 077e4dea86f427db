/// Where things lie in an index segment, by the numbers in its header (FORMAT 4.1).
struct SegmentLayout: Equatable, Sendable {
  /// Where the fan-out begins, from the frame's start.
  static let fanOutOffset = 48
  /// How many bytes an entry of the wide form takes.
  static let wideEntryLength = 8
  /// The most fan-out bits of the wide form.
  static let maximumFanOutBits = 24
  /// The most leading bits that tell buckets apart: as many as every key has.
  private static let maximumBucketBits = 28
  /// How many more bits tell buckets apart than the fan-out has: 512 buckets are looked through at
  /// most.
  private static let bitsBehindFanOut = 9

  let form: IndexForm
  /// The first ordinal covered.
  let base: UInt64
  /// How many ordinals are covered.
  let count: Int
  /// How many data frames are covered.
  let frameCount: Int
  /// How many leading bits the fan-out tells apart.
  let fanOutBits: Int
  /// How many leading bits the buckets of the packed form tell apart.
  let bucketBits: Int
  /// How many bits an ordinal takes in an entry of the packed form.
  let ordinalBits: Int
  /// How many bits of a key an entry of the packed form can tell, those of its bucket included.
  let keyBits: Int

  /// How many bits an entry of the packed form takes.
  let entryBits: Int
  /// Where the marks of the packed form begin, from the frame's start: for each bucket a one for
  /// each of its entries and a zero.
  let marksOffset: Int
  /// Where the entries begin.
  let entriesOffset: Int
  /// Where the frame table begins.
  let framesOffset: Int

  /// The layout that a writer uses, or that a segment has whose header says this.
  ///
  /// - Precondition: `count` is 1 at least, and all ordinals are below 2^63.
  /// - Parameter fanOutBits: How many fan-out bits there are, in a segment of the wide form that is
  ///   read.
  init(_ form: IndexForm, base: UInt64, count: Int, frameCount: Int, fanOutBits: Int? = nil) {
    self.form = form
    self.base = base
    self.count = count
    self.frameCount = frameCount
    ordinalBits = Int.bitWidth - (count - 1).leadingZeroBitCount
    bucketBits = min(ordinalBits, Self.maximumBucketBits)
    keyBits = form.keyBits(of: base + UInt64(count - 1))
    entryBits = keyBits - bucketBits + ordinalBits
    switch form {
    case .wide:
      var bits = 0
      while bits < Self.maximumFanOutBits, count > 32 << bits { bits += 1 }
      self.fanOutBits = fanOutBits ?? bits
      marksOffset = Self.fanOutOffset + 4 << self.fanOutBits
      entriesOffset = marksOffset
      framesOffset = entriesOffset + Self.wideEntryLength * count
    case .packed:
      self.fanOutBits = max(0, bucketBits - Self.bitsBehindFanOut)
      marksOffset = Self.fanOutOffset + 4 << self.fanOutBits
      entriesOffset = marksOffset + BitBlocks.length(bits: count + 1 << bucketBits)
      framesOffset = entriesOffset + BitBlocks.length(bits: entryBits * count)
    }
  }

  /// How long the segment's frame is.
  var length: Int {
    framesOffset + FrameEntry.length * frameCount + SkippableFrame.checksumLength
  }
}
