/// The entries of a segment.
extension IndexSegment {
  /// Finds the sections whose key begins like `key`, as far as the segment can tell keys apart.
  ///
  /// - Parameters:
  ///   - key: The key, or as many bits of it as are known.
  ///   - knownBits: How many that are, not fewer than tell buckets apart.
  ///   - file: Where the segment lies.
  ///   - body: Called with the ordinal of each.
  /// - Throws: ``ArchiveError`` if the numbers it meets cannot be.
  @inline(__always)
  func forEachCandidate(
    _ key: UInt64, knownBits: Int = 64, in file: Span<UInt8>, _ body: (UInt64) -> Void
  ) throws(ArchiveError) {
    let range = try bucket(of: key, in: file)
    let bucket = key.leading(layout.bucketBits)
    // Entries of lower ordinals may keep fewer bits, and stand before what has more.
    let lowest = key & ~(.max >> UInt64(min(knownBits, form.keyBits(of: base))))
    let highest = key | (knownBits < 64 ? .max >> UInt64(knownBits) : 0)
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if entry(middle, bucket, in: file).key < lowest { low = middle + 1 } else { high = middle }
    }
    while low < range.upperBound {
      let entry = entry(low, bucket, in: file)
      guard entry.key <= highest else { return }
      guard entry.ordinal < count else { throw ordinalOutside }
      let ordinal = base + UInt64(entry.ordinal)
      let alike = (entry.key ^ key).leadingZeroBitCount
      if alike >= min(knownBits, form.keyBits(of: ordinal)) { body(ordinal) }
      low += 1
    }
  }

  var ordinalOutside: ArchiveError {
    ArchiveError(.damagedIndex("an entry names an ordinal outside it"), at: frame.offset)
  }

  private var decreasing: ArchiveError {
    ArchiveError(.damagedIndex("its fan-out decreases"), at: frame.offset)
  }

  /// Where in the frame the marks and entries are that have the leading bits of a key; nil if they
  /// cannot be told.
  func places(of key: UInt64, in file: Span<UInt8>) -> (marks: Range<Int>, entries: Range<Int>)? {
    let leading = key.leading(layout.fanOutBits)
    let start = leading == 0 ? 0 : fanOut(leading - 1, in: file)
    let end = fanOut(leading, in: file)
    guard start <= end, end <= count else { return nil }
    let bits = layout.bucketBits - layout.fanOutBits
    let marks =
      form == .packed
      ? BitBlocks.place(of: start + leading << bits..<end + (leading + 1) << bits + 63) : 0..<0
    let entries =
      form == .packed
      ? BitBlocks.place(of: start * layout.entryBits..<end * layout.entryBits)
      : start * SegmentLayout.wideEntryLength..<end * SegmentLayout.wideEntryLength
    func within(_ range: Range<Int>, from start: Int) -> Range<Int> {
      (start + range.lowerBound..<start + range.upperBound).clamped(to: 0..<frame.length)
    }
    return (
      within(marks, from: layout.marksOffset), within(entries, from: layout.entriesOffset)
    )
  }

  /// The numbers of the entries among which those with this key are.
  @inline(__always)
  private func bucket(of key: UInt64, in file: Span<UInt8>) throws(ArchiveError) -> Range<Int> {
    let leading = key.leading(layout.fanOutBits)
    let start = leading == 0 ? 0 : fanOut(leading - 1, in: file)
    let end = fanOut(leading, in: file)
    guard start <= end, end <= count else { throw decreasing }
    guard form == .packed, start < end else { return start..<end }
    // Within the range of the fan-out, the marks tell how many entries each bucket has.
    let bits = layout.bucketBits - layout.fanOutBits
    let (bucket, before) = (key.leading(layout.bucketBits), leading << bits)
    let limit = end + (leading + 1) << bits
    var place = start + before
    if bucket > before {
      place = try self.place(behindClear: bucket - before, from: place, limit: limit, in: file)
    }
    let low = place - bucket
    let high = try self.place(behindClear: 1, from: place, limit: limit, in: file) - 1 - bucket
    guard start <= low, high <= end else { throw decreasing }
    return low..<high
  }

  /// The place after this many clear marks from another on.
  @inline(__always)
  private func place(
    behindClear count: Int, from start: Int, limit: Int, in file: Span<UInt8>
  ) throws(ArchiveError) -> Int {
    let marks = frame.offset + layout.marksOffset
    var (place, rest) = (start, count)
    while true {
      var clear = ~BitBlocks.bits(63, at: place, in: file, from: marks) & (1 << 63 - 1)
      let found = clear.nonzeroBitCount
      if found >= rest {
        for _ in 1..<rest { clear &= clear - 1 }
        return place + clear.trailingZeroBitCount + 1
      }
      rest -= found
      place += 63
      guard place < limit else { throw decreasing }
    }
  }

  @inline(__always)
  private func fanOut(_ index: Int, in file: Span<UInt8>) -> Int {
    Int(file.u32(frame.offset + SegmentLayout.fanOutOffset + 4 * index))
  }

  /// Entry number `index`.
  ///
  /// - Precondition: `index` is below ``count``.
  /// - Parameter bucket: The bucket it lies in.
  @inline(__always)
  private func entry(_ index: Int, _ bucket: Int, in file: Span<UInt8>) -> IndexEntry {
    let start = frame.offset + layout.entriesOffset
    switch form {
    case .wide:
      let place = start + index * SegmentLayout.wideEntryLength
      return (key: UInt64(file.u32(place)) << 32, ordinal: file.u32(place + 4))
    case .packed:
      let bits = BitBlocks.bits(
        layout.entryBits, at: index * layout.entryBits, in: file, from: start)
      let rest = layout.keyBits - layout.bucketBits
      return (
        key: (UInt64(bucket) << UInt64(rest) | bits >> UInt64(layout.ordinalBits))
          << UInt64(64 - layout.keyBits),
        ordinal: UInt32(bits & (1 << UInt64(layout.ordinalBits) - 1))
      )
    }
  }

  /// Calls `body` with each ordinal and what is kept of its key, up to the first entry that cannot
  /// be: that names no key.
  func forEachKept(in file: Span<UInt8>, _ body: (UInt64, UInt64) -> Void) {
    var entries = entries
    while let entry = try? entries.next(in: file) { body(base + UInt64(entry.ordinal), entry.key) }
  }

  /// All entries, one after the other.
  var entries: Entries { Entries(self) }

  /// A place in a segment's entries, which are in the order of their keys.
  struct Entries {
    let segment: IndexSegment
    private var index = 0
    private var bucket = 0

    fileprivate init(_ segment: IndexSegment) { self.segment = segment }

    /// The next entry; nil after the last.
    ///
    /// - Throws: ``ArchiveError`` if the numbers it meets cannot be.
    @inline(__always)
    mutating func next(in file: Span<UInt8>) throws(ArchiveError) -> IndexEntry? {
      guard index < segment.count else { return nil }
      if segment.form == .packed { try findBucket(in: file) }
      let entry = segment.entry(index, bucket, in: file)
      guard entry.ordinal < segment.count else { throw segment.ordinalOutside }
      index += 1
      return entry
    }

    private mutating func findBucket(in file: Span<UInt8>) throws(ArchiveError) {
      let marks = segment.frame.offset + segment.layout.marksOffset
      while true {
        // An entry's mark stands after those of the entries and the buckets before it.
        let ahead = BitBlocks.bits(63, at: index + bucket, in: file, from: marks)
        bucket += min(ahead.trailingZeroBitCount, 63)
        guard bucket < 1 << segment.layout.bucketBits else { throw segment.decreasing }
        if ahead != 0 { return }
      }
    }
  }
}
