internal import IPLD

/// Makes the bytes of an index segment from the keys of its sections, in order of ordinals, and its frame table.
///
/// The order of entries is fixed by the format, so the same sections give the same bytes: that is what makes the index a
/// cache that can be thrown away.
package struct IndexSegmentBuilder {
  private static let pieceLength = 1 << 20

  private let fanOutBits: Int
  private let base: UInt64
  private let fanOut: [UInt32]
  /// The beginning of the key in the upper half, the relative ordinal in the lower; sorted.
  private let entries: [UInt64]
  private let frames: ArraySlice<FrameEntry>

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
  ///   - frames: The data frames they lie in.
  package init(base: UInt64, keys: KeyList, frames: ArraySlice<FrameEntry>) {
    let bits = IndexSegment.fanOutBits(count: keys.count)
    var ends = [UInt32](repeating: 0, count: 1 << bits)
    for index in 0..<keys.count { ends[SectionKey.leading(keys[index], bits: bits)] += 1 }
    var total: UInt32 = 0
    for bucket in ends.indices {
      total += ends[bucket]
      ends[bucket] = total
    }
    // Every entry goes straight into its bucket, from the bucket's end down; what is left is to sort some 32 numbers each.
    var entries = [UInt64](repeating: 0, count: keys.count)
    var places = ends
    for index in 0..<keys.count {
      let key = keys[index]
      let bucket = SectionKey.leading(key, bits: bits)
      places[bucket] -= 1
      entries[Int(places[bucket])] =
        UInt64(SectionKey.short(key)) << 32 | UInt64(index)
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
    guard
      var piece = SkippableFrame.header(
        .indexSegment, payloadLength: length - SkippableFrame.minimumLength)
    else { throw ArchiveError(.tooManySections) }
    piece.reserveCapacity(Self.pieceLength + 64)
    piece.append(contentsOf: [UInt8(fanOutBits), 0, 0, 0])
    piece.append(littleEndian: base)
    piece.append(littleEndian: UInt32(entries.count))
    piece.append(littleEndian: UInt32(frames.count))
    var hash = XXH64.Stream()
    func drain() throws {
      hash.update(piece.span)
      try sink(piece.span)
      piece.removeAll(keepingCapacity: true)
    }
    for end in fanOut {
      piece.append(littleEndian: end)
      if piece.count >= Self.pieceLength { try drain() }
    }
    for entry in entries {
      piece.append(littleEndian: entry << 32 | entry >> 32)
      if piece.count >= Self.pieceLength { try drain() }
    }
    for frame in frames {
      frame.append(base: base, to: &piece)
      if piece.count >= Self.pieceLength { try drain() }
    }
    try drain()
    let checksum = hash.finish()
    piece.append(littleEndian: checksum)
    try sink(piece.span)
    return checksum
  }
}
