/// Makes the bytes of an index segment from the keys of its sections, in order of ordinals, and its
/// frame table; and from adjacent segments before these, which are read where they lie.
///
/// The order of entries is fixed by the format, so the same sections give the same bytes: that is
/// what makes the index a cache that can be thrown away. Entries come in the order of their keys
/// from each segment, so merging passes through all of them, and holds in memory what their buckets
/// take.
package struct IndexSegmentBuilder {
  /// The first ordinal of the sections whose keys are here.
  private let newBase: UInt64
  private let newFrames: ArraySlice<FrameEntry>
  /// Where things would lie in a segment of these sections alone.
  private let newLayout: SegmentLayout
  /// The segments before them, which follow one another, and where these lie.
  private var older: [IndexSegment] = []
  private var file: MappedFile?
  /// How many leading bits tell the groups apart in which the entries were sorted.
  private let groupBits: Int
  /// How many entries are in this group or before it.
  private let ends: [UInt32]
  /// The bits of the key after those that tell the group, above the relative ordinal; sorted.
  private let sorted: [UInt64]

  /// The first ordinal covered.
  var base: UInt64 { older.first?.base ?? newBase }
  /// How many ordinals are covered.
  package var count: Int { older.reduce(sorted.count) { $0 + $1.count } }
  /// How many data frames are covered.
  var frameCount: Int { older.reduce(newFrames.count) { $0 + $1.frameCount } }
  /// How long the segment's frame is.
  package var length: Int { layout.length }

  private var layout: SegmentLayout {
    SegmentLayout(newLayout.form, base: base, count: max(1, count), frameCount: frameCount)
  }

  /// Sorts the entries.
  ///
  /// - Parameters:
  ///   - form: How the entries are written.
  ///   - base: The first ordinal.
  ///   - keys: The key prefix of each section from there on.
  ///   - range: The numbers of the keys that count; by default all.
  ///   - frames: The data frames they lie in.
  package init(
    _ form: IndexForm, base: UInt64, keys: KeyList, range: Range<Int>? = nil,
    frames: ArraySlice<FrameEntry>
  ) {
    let range = range ?? 0..<keys.count
    let count = range.count
    let layout = SegmentLayout(form, base: base, count: max(1, count), frameCount: frames.count)
    // Some 32 entries each.
    let bits = max(0, layout.ordinalBits - 5)
    var ends = [UInt32](repeating: 0, count: 1 << bits)
    for index in range { ends[keys[index].leading(bits)] += 1 }
    var total: UInt32 = 0
    for group in ends.indices {
      total += ends[group]
      ends[group] = total
    }
    // Every entry goes straight into its group, from the group's end down; what is left is to sort
    // some 32 numbers each.
    var sorted = [UInt64](repeating: 0, count: count)
    var places = ends
    let restBits = layout.keyBits - bits
    for index in range {
      let ordinal = UInt64(index - range.lowerBound)
      let key = form.kept(keys[index], of: base + ordinal)
      let group = key.leading(bits)
      places[group] -= 1
      let rest = (key << UInt64(bits)) >> UInt64(64 - restBits)
      sorted[Int(places[group])] = rest << UInt64(layout.ordinalBits) | ordinal
    }
    for group in ends.indices {
      let range = Int(places[group])..<Int(ends[group])
      if range.count > 1 { sorted[range].sort() }
    }
    newBase = base
    newFrames = frames
    newLayout = layout
    groupBits = bits
    self.ends = ends
    self.sorted = sorted
  }

  /// The segment that adjacent ones and this one make.
  ///
  /// - Parameters:
  ///   - older: Segments that follow one another.
  ///   - base: The first ordinal covered: those of an earlier one are left out.
  ///   - file: Where they lie.
  func merged(with older: [IndexSegment]?, from base: UInt64, in file: MappedFile?)
    -> IndexSegmentBuilder
  {
    var merged = self
    (merged.older, merged.file) = (older?.filter { $0.base >= base } ?? [], file)
    return merged
  }

  /// Entry number `index` of the sections whose keys are here, in the order of these; nil after the
  /// last.
  ///
  /// - Parameter group: That of the entry before; 0 for the first.
  @inline(__always)
  private func entry(_ index: Int, _ group: inout Int) -> IndexEntry? {
    guard index < sorted.count else { return nil }
    while ends[group] <= UInt32(truncatingIfNeeded: index) { group += 1 }
    let (number, ordinalBits) = (sorted[index], UInt64(newLayout.ordinalBits))
    let restBits = UInt64(newLayout.keyBits - groupBits)
    let key = (UInt64(group) << restBits | number >> ordinalBits) << UInt64(64 - newLayout.keyBits)
    return (key: key, ordinal: UInt32(number & (1 << ordinalBits - 1)))
  }

  /// Whether the bytes at `offset` are this segment's frame.
  package func isEncoded(in file: Span<UInt8>, at offset: Int, length: Int) -> Bool {
    guard count > 0, length == layout.length else { return false }
    var place = offset
    var isEqual = true
    // What cannot be encoded is nowhere.
    let checksum = try? encode { piece in
      isEqual = isEqual && piece.equals(file.extracting(place..<place + piece.count))
      place += piece.count
    }
    return isEqual && checksum != nil
  }

  /// Passes on the frame's bytes in pieces, and returns its checksum, which is the last eight of
  /// them.
  ///
  /// - Throws: ``ArchiveError`` if the segments have not the same form, or this one is longer than
  ///   a frame can be; and what `sink` throws.
  @discardableResult
  package func encode(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    if let other = older.first(where: { $0.form != newLayout.form }) {
      throw ArchiveError(
        .damagedIndex("its form differs from that of the file"), at: other.frame.offset)
    }
    guard !older.isEmpty, let file else { return try encode(in: Span(), to: sink) }
    return try file.withBytes(reading: older.map(\.frame.range)) { (bytes) throws in
      try encode(in: bytes, to: sink)
    }
  }

  private func encode(in file: Span<UInt8>, to sink: (Span<UInt8>) throws -> Void) throws
    -> UInt64
  {
    let (layout, base) = (layout, base)
    var encoder = try SegmentEncoder(layout)
    var counts = SegmentEncoder.Counts(layout)
    try forEachEntry(in: file) { (entry) throws in try counts.add(entry) }
    try counts.finish()
    for end in counts.fanOut {
      encoder.piece.append(littleEndian: end)
      if encoder.piece.count >= SegmentEncoder.pieceLength { try encoder.drain(sink) }
    }
    encoder.piece.append(contentsOf: counts.marks)
    try encoder.drain(sink)
    try forEachEntry(in: file) { (entry) throws in
      encoder.append(entry)
      if encoder.piece.count >= SegmentEncoder.pieceLength { try encoder.drain(sink) }
    }
    encoder.bits.finish(&encoder.piece)
    try forEachFrame(in: file) { (frame) throws in
      frame.append(base: base, to: &encoder.piece)
      if encoder.piece.count >= SegmentEncoder.pieceLength { try encoder.drain(sink) }
    }
    return try encoder.finish(sink)
  }

  private func forEachEntry(in file: Span<UInt8>, _ body: (IndexEntry) throws -> Void) throws {
    var places = older.map(\.entries)
    var entries: [IndexEntry?] = []
    for index in places.indices { entries.append(try places[index].next(in: file)) }
    var (place, group) = (0, 0)
    func next() -> IndexEntry? {
      place += 1
      return entry(place - 1, &group)
    }
    if older.isEmpty {
      while let entry = next() { try body(entry) }
      return
    }
    entries.append(next())
    let shifts = older.map { UInt32($0.base - base) } + [UInt32(newBase - base)]
    while true {
      // Few enough to be compared one by one; of equal keys the older come first.
      var least: (key: UInt64, source: Int)?
      for (source, entry) in entries.enumerated() {
        if let entry, least.map({ entry.key < $0.key }) ?? true { least = (entry.key, source) }
      }
      guard let least, let entry = entries[least.source] else { return }
      try body((key: entry.key, ordinal: entry.ordinal + shifts[least.source]))
      if least.source < places.count {
        entries[least.source] = try places[least.source].next(in: file)
      } else {
        entries[least.source] = next()
      }
    }
  }

  private func forEachFrame(in file: Span<UInt8>, _ body: (FrameEntry) throws -> Void) throws {
    for segment in older {
      for frame in segment.frames(in: file) { try body(frame) }
    }
    for frame in newFrames { try body(frame) }
  }
}

/// When index segments are merged.
///
/// Every backup adds a segment. A lookup asks each of them, and every footer names them all, so
/// they must not become many; but merging writes them again. As long as there are few, nothing is
/// merged. Beyond that the newest ones become one, as many as it takes until the one before is as
/// large as they are together: so sizes fall off geometrically, and in a thousand generations of
/// like size an entry is written four times.
extension IndexSegmentBuilder {
  /// How many segments there may be before some are merged; fewer than a footer can name.
  static let maximumCount = 12

  /// How many of the live segments stay as they are when there are this many new sections, in this
  /// many frames.
  static func keptCount(_ live: [Generation.Segment], newSections: Int, newFrames: Int) -> Int {
    guard live.count >= maximumCount else { return live.count }
    var kept = live.count
    var (sections, frames) = (newSections, newFrames)
    while kept > 0 {
      let next = live[kept - 1]
      let isOneTooMany = kept == live.count
      guard isOneTooMany || UInt64(next.sectionCount) < UInt64(sections),
        IndexSegment.fits(
          count: sections + Int(next.sectionCount), frameCount: frames + Int(next.frameCount))
      else { break }
      sections += Int(next.sectionCount)
      frames += Int(next.frameCount)
      kept -= 1
    }
    return kept
  }
}

extension Generation.Segment {
  /// The first ordinal after those covered.
  var end: UInt64 { base + UInt64(sectionCount) }
}
