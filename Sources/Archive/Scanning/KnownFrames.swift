/// The frame tables of index segments whose checksums hold, passed through once, in order.
struct KnownFrames {
  private let segments: [IndexSegment]
  private var segment = 0
  private var index = 0

  init(_ segments: [IndexSegment]) {
    self.segments = segments
  }

  /// The next frame, or nil behind the last.
  func next(in file: Span<UInt8>) -> FrameEntry? {
    guard segment < segments.count else { return nil }
    return segments[segment].frameEntry(index, in: file)
  }

  /// Goes on to the one after it.
  mutating func advance() {
    index += 1
    if segment < segments.count, index >= segments[segment].frameCount {
      segment += 1
      index = 0
    }
  }
}
