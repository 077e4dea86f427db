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
  init(older: [IndexSegment], in file: MappedFile?, newer: IndexSegmentBuilder) {
    self.older = older
    self.file = file
    self.newer = newer
  }

  /// - Throws: ``ArchiveError`` if they have not the same form.
  private func check() throws(ArchiveError) {
    guard let other = older.first(where: { $0.form != newer.form }) else { return }
    throw ArchiveError(
      .damagedIndex("it has another form than the file"), offset: UInt64(other.frame.offset))
  }

  /// Whether the bytes at `offset` are this segment's frame.
  func isEncoded(in file: Span<UInt8>, at offset: Int, length: Int) -> Bool {
    guard !older.isEmpty, let source = self.file else {
      return newer.isEncoded(in: file, at: offset, length: length)
    }
    guard older.allSatisfy({ $0.form == newer.form }) else { return false }
    return source.withBytes { bytes in
      SegmentEncoder.isEncoded(self, in: bytes, as: file, at: offset, length: length)
    }
  }

  /// Hands out the frame's bytes in pieces, and answers with its checksum, which is the last eight
  /// of them.
  ///
  /// - Throws: ``ArchiveError`` if the segment is longer than a frame can be, and what `sink`
  ///   throws.
  func encode(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    guard !older.isEmpty, let file else { return try newer.encode(sink) }
    try check()
    return try file.withBytes { (bytes) throws in
      try SegmentEncoder.encode(self, in: bytes, to: sink)
    }
  }
}

extension MergedSegment: SegmentContents {
  var layout: SegmentLayout {
    SegmentLayout(newer.form, base: base, count: count, frameCount: frameCount)
  }

  func forEachEntry(in file: Span<UInt8>, _ body: (IndexEntry) throws -> Void) throws {
    var places = older.map(\.entries)
    var entries: [IndexEntry?] = []
    for index in places.indices { entries.append(try places[index].next(in: file)) }
    var place = newer.entries
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
