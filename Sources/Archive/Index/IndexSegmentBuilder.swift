internal import IPLD

/// Makes the bytes of an index segment from the keys of its sections, in order of ordinals, and its frame table.
///
/// The order of entries is fixed by the format, so the same sections give the same bytes: that is what makes the index a
/// cache that can be thrown away.
package struct IndexSegmentBuilder {
  private let fanOutBits: Int
  let base: UInt64
  private let fanOut: [UInt32]
  /// The beginning of the key in the upper half, the relative ordinal in the lower; sorted.
  let entries: [UInt64]
  let frames: ArraySlice<FrameEntry>

  /// How many sections there are.
  var count: Int { entries.count }

  /// How long the segment's frame is.
  package var length: Int {
    IndexSegment.length(
      fanOutBits: fanOutBits, count: entries.count, frameCount: frames.count)
  }

  /// Sorts the entries.
  ///
  /// - Parameters:
  ///   - base: The first ordinal.
  ///   - keys: The key prefix of each section from there on.
  ///   - range: The numbers of the keys that count; by default all.
  ///   - frames: The data frames they lie in.
  package init(
    base: UInt64, keys: KeyList, range: Range<Int>? = nil, frames: ArraySlice<FrameEntry>
  ) {
    let range = range ?? 0..<keys.count
    let count = range.count
    let bits = IndexSegment.fanOutBits(count: count)
    var ends = [UInt32](repeating: 0, count: 1 << bits)
    for index in range { ends[SectionKey.leading(keys[index], bits: bits)] += 1 }
    var total: UInt32 = 0
    for bucket in ends.indices {
      total += ends[bucket]
      ends[bucket] = total
    }
    // Every entry goes straight into its bucket, from the bucket's end down; what is left is to sort some 32 numbers each.
    var entries = [UInt64](repeating: 0, count: count)
    var places = ends
    for index in range {
      let key = keys[index]
      let bucket = SectionKey.leading(key, bits: bits)
      places[bucket] -= 1
      entries[Int(places[bucket])] =
        UInt64(SectionKey.short(key)) << 32 | UInt64(index - range.lowerBound)
    }
    for bucket in ends.indices {
      let range = Int(places[bucket])..<Int(ends[bucket])
      if range.count > 1 { entries[range].sort() }
    }
    fanOutBits = bits
    self.base = base
    fanOut = ends
    self.entries = entries
    self.frames = frames
  }

  /// The keys that several sections have.
  package func repeatedKeys(_ keys: KeyList) -> Set<UInt64> {
    var repeated = Set<UInt64>()
    var start = 0
    while start < entries.count {
      var end = start + 1
      while end < entries.count, entries[end] >> 32 == entries[start] >> 32 { end += 1 }
      if end - start > 1 {
        // Keys that begin alike are rarely the same.
        var seen = Set<UInt64>()
        for entry in entries[start..<end] {
          let key = keys[Int(entry & 0xffff_ffff)]
          if !seen.insert(key).inserted { repeated.insert(key) }
        }
      }
      start = end
    }
    return repeated
  }

  /// Whether the bytes at `offset` are this segment's frame.
  package func isEncoded(in file: Span<UInt8>, at offset: Int, length: Int) -> Bool {
    guard length == self.length, !entries.isEmpty else { return false }
    var place = offset
    var isEqual = true
    do {
      try encode { piece in
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
  @discardableResult
  package func encode(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    var encoder = try SegmentEncoder(
      fanOutBits: fanOutBits, base: base, count: entries.count, frameCount: frames.count)
    try encoder.append(fanOut: fanOut, sink)
    for entry in entries { try encoder.append(entry: entry, sink) }
    for frame in frames { try encoder.append(frame: frame, sink) }
    return try encoder.finish(sink)
  }
}
