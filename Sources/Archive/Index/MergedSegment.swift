internal import IPLD

/// One index segment made of adjacent ones of the same form, which are read where they lie, and of
/// the sections that are new.
///
/// Entries come in the order of their keys from each of them, so merging passes through all of
/// them, and holds in memory what their buckets take. The bytes are those that
/// ``IndexSegmentBuilder`` would make of all the keys.
struct MergedSegment {
  private let older: [IndexSegment]
  private let file: MappedFile?
  private let newer: IndexSegmentBuilder

  /// The first ordinal covered.
  var base: UInt64 { older.first?.base ?? newer.base }
  /// How many ordinals are covered.
  var count: Int { older.reduce(newer.count) { $0 + $1.count } }
  /// How many data frames are covered.
  var frameCount: Int { older.reduce(newer.frames.count) { $0 + $1.frameCount } }

  /// A segment of adjacent ones.
  ///
  /// - Parameters:
  ///   - older: segments that follow one another.
  ///   - file: where they lie.
  ///   - newer: the sections behind them.
  init(older: [IndexSegment] = [], in file: MappedFile? = nil, newer: IndexSegmentBuilder) {
    self.older = older
    self.file = file
    self.newer = newer
  }

  /// Whether the bytes at `offset` are this segment's frame.
  func isEncoded(in file: Span<UInt8>, at offset: Int, length: Int) -> Bool {
    guard count > 0, length == layout.length else { return false }
    var place = offset
    var isEqual = true
    do {
      _ = try encode { piece in
        isEqual = isEqual && piece.equals(file.extracting(place..<place + piece.count))
        place += piece.count
      }
    } catch {
      return false
    }
    return isEqual
  }

  /// Hands out the frame's bytes in pieces, and returns its checksum, which is the last eight of
  /// them.
  ///
  /// - Throws: ``ArchiveError`` if the segments have not the same form, or this one is longer than a
  ///   frame can be; and what `sink` throws.
  func encode(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    if let other = older.first(where: { $0.form != newer.form }) {
      throw ArchiveError(
        .damagedIndex("it has another form than the file"), offset: UInt64(other.frame.offset))
    }
    guard !older.isEmpty, let file else {
      return try SegmentEncoder.encode(self, in: Span(), to: sink)
    }
    return try file.withBytes { (bytes) throws in
      try SegmentEncoder.encode(self, in: bytes, to: sink)
    }
  }

  var layout: SegmentLayout {
    SegmentLayout(newer.form, base: base, count: count, frameCount: frameCount)
  }

  func forEachEntry(in file: Span<UInt8>, _ body: (IndexEntry) throws -> Void) throws {
    var places = older.map(\.entries)
    var entries: [IndexEntry?] = []
    for index in places.indices { entries.append(try places[index].next(in: file)) }
    var place = newer.entries
    if older.isEmpty {
      while let entry = place.next() { try body(entry) }
      return
    }
    entries.append(place.next())
    let shifts = older.map { UInt32($0.base - base) } + [UInt32(newer.base - base)]
    while true {
      // Few enough to be compared one by one; of equal keys the older come first.
      var least: (key: UInt64, source: Int)?
      for (source, entry) in entries.enumerated() {
        if let entry, least.map({ entry.key < $0.key }) ?? true { least = (entry.key, source) }
      }
      guard let least, let entry = entries[least.source] else { return }
      try body(IndexEntry(key: entry.key, ordinal: entry.ordinal + shifts[least.source]))
      if least.source < places.count {
        entries[least.source] = try places[least.source].next(in: file)
      } else {
        entries[least.source] = place.next()
      }
    }
  }

  func forEachFrame(in file: Span<UInt8>, _ body: (FrameEntry) throws -> Void) throws {
    for segment in older {
      for index in 0..<segment.frameCount { try body(segment.frameEntry(index, in: file)) }
    }
    for frame in newer.frames { try body(frame) }
  }
}

/// When index segments are merged.
///
/// Every backup adds a segment. A lookup asks each of them, and every footer names them all, so
/// they must not become many; but merging writes them again. As long as there are few, nothing is
/// merged. Beyond that the newest ones become one, as many as it takes until the one before is as
/// large as they are together: so sizes fall off geometrically, and in a thousand generations of
/// like size an entry is written four times.
extension MergedSegment {
  /// How many segments there may be before some are merged; fewer than a footer can name.
  static let maximumCount = 12

  /// How many of the live segments stay as they are when there are so many new sections, in so many
  /// frames.
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
  /// The first ordinal behind those covered.
  var end: UInt64 { base + UInt64(sectionCount) }
}
