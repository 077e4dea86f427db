internal import IPLD

/// One index segment made of adjacent ones, which are read where they lie, and of the sections that are new.
///
/// Entries come in the order of their short keys from each of them, so merging passes through all of them once and holds the
/// fan-out in memory, an eighth of a byte for each byte of entries. The bytes are those that ``IndexSegmentBuilder`` would make
/// of all the keys.
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

  private var fanOutBits: Int { IndexSegment.fanOutBits(count: count) }
  private var length: Int {
    IndexSegment.length(fanOutBits: fanOutBits, count: count, frameCount: frameCount)
  }

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

  /// Whether the bytes at `offset` are this segment's frame.
  func isEncoded(in file: Span<UInt8>, at offset: Int, length: Int) -> Bool {
    guard length == self.length, count > 0 else { return false }
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

  /// Hands out the frame's bytes in pieces, and answers with its checksum, which is the last eight of them.
  ///
  /// - Throws: ``ArchiveError`` if the segment is longer than a frame can be, and what `sink` throws.
  func encode(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    guard !older.isEmpty, let file else { return try newer.encode(sink) }
    return try file.withBytes { (bytes) throws in
      var encoder = try SegmentEncoder(
        fanOutBits: fanOutBits, base: base, count: count, frameCount: frameCount)
      try encoder.append(fanOut: fanOut(in: bytes), sink)
      var cursors = try older.map { (segment) throws in
        try Cursor(segment, shift: UInt32(segment.base - base), in: bytes)
      }
      let shift = UInt32(newer.base - base)
      var rest = newer.entries[...]
      while true {
        // Few enough to be compared one by one.
        var least = rest.first.map { $0 + UInt64(shift) }
        var source: Int?
        for index in cursors.indices {
          guard let entry = cursors[index].entry else { continue }
          if least.map({ entry < $0 }) ?? true { (least, source) = (entry, index) }
        }
        guard let least else { break }
        try encoder.append(entry: least, sink)
        if let source {
          try cursors[source].advance(in: bytes)
        } else {
          rest.removeFirst()
        }
      }
      for segment in older {
        for index in 0..<segment.frameCount {
          try encoder.append(frame: segment.frameEntry(index, in: bytes), sink)
        }
      }
      for frame in newer.frames { try encoder.append(frame: frame, sink) }
      return try encoder.finish(sink)
    }
  }

  private func fanOut(in file: Span<UInt8>) -> [UInt32] {
    let bits = fanOutBits
    var ends = [UInt32](repeating: 0, count: 1 << bits)
    func count(_ entry: UInt64) { ends[bits == 0 ? 0 : Int(entry >> (64 - UInt64(bits)))] += 1 }
    for segment in older {
      for index in 0..<segment.count { count(segment.entry(index, in: file)) }
    }
    for entry in newer.entries { count(entry) }
    var total: UInt32 = 0
    for bucket in ends.indices {
      total += ends[bucket]
      ends[bucket] = total
    }
    return ends
  }

  /// A place in a segment's entries.
  private struct Cursor {
    private let segment: IndexSegment
    private let shift: UInt32
    private var index = 0
    /// The entry there, its ordinal counted from the merged segment's base; nil behind the last.
    private(set) var entry: UInt64?

    init(_ segment: IndexSegment, shift: UInt32, in file: Span<UInt8>) throws(ArchiveError) {
      self.segment = segment
      self.shift = shift
      try read(in: file)
    }

    mutating func advance(in file: Span<UInt8>) throws(ArchiveError) {
      index += 1
      try read(in: file)
    }

    private mutating func read(in file: Span<UInt8>) throws(ArchiveError) {
      entry = nil
      guard index < segment.count else { return }
      let entry = segment.entry(index, in: file)
      // A higher one would spoil the key.
      guard entry & 0xffff_ffff < UInt64(segment.count) else {
        throw ArchiveError(
          .damagedIndex("an entry names an ordinal outside it"),
          offset: UInt64(segment.frame.offset))
      }
      self.entry = entry + UInt64(shift)
    }
  }
}
