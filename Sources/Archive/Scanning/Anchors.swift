/// All index segments of a file that hold, dead or alive: what is left to go by when the live ones are not all there
/// (FORMAT 7).
///
/// They are found by the magic, so it does not matter what is damaged before them.
package struct Anchors: Sendable {
  private let segments: [IndexSegment]

  /// The segments in the first `limit` bytes.
  package init(in file: Span<UInt8>, limit: Int) {
    let part = file.extracting(first: limit)
    var segments: [IndexSegment] = []
    var place = 0
    while let magic = ArchiveMagic.next(in: part, from: place) {
      // What is no segment, or one that does not hold, says nothing.
      if let segment = try? IndexSegment(part, at: magic - 8), segment.frame.holds(in: part) {
        segments.append(segment)
      }
      place = magic + ArchiveMagic.length
    }
    self.segments = segments
  }

  /// What a segment says of the frame that begins at `offset` and ends by `limit`; nil if none knows one.
  package func entry(at offset: Int, limit: Int, in file: Span<UInt8>) -> FrameEntry? {
    for segment in segments.reversed() where segment.frame.offset > offset {
      var (low, high) = (0, segment.frameCount)
      while low < high {
        let middle = low + (high - low) / 2
        if segment.frameEntry(middle, in: file).offset < UInt64(offset) {
          low = middle + 1
        } else {
          high = middle
        }
      }
      guard low < segment.frameCount else { continue }
      let entry = segment.frameEntry(low, in: file)
      if entry.offset == UInt64(offset), entry.storedLength > 0, entry.end <= UInt64(limit) {
        return entry
      }
    }
    return nil
  }
}
