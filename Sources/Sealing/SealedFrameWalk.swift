internal import Archive

/// The frames of a sealed file one after another, and behind damage the next one by its magic.
struct SealedFrameWalk {
  /// A frame, and what lies before it.
  struct Step {
    let frame: SealedFrame
    /// Whether its checksum holds.
    let holds: Bool
    /// Bytes between the frame before and this one that are no frame.
    let gap: Range<Int>
  }

  private let file: MappedFile
  /// Where the next frame should begin.
  private(set) var place: Int

  init(_ file: MappedFile, from place: Int) { (self.file, self.place) = (file, place) }

  /// The next frame; nil if no more follows.
  mutating func next() -> Step? {
    let start = place
    while place < file.count {
      if let (frame, holds) = frame(at: place) {
        // A damaged length may reach over the frames that follow.
        let inner =
          holds
          ? nil : SealedFrame.next(in: file, from: place + 1, before: frame.range.upperBound)
        guard let inner else {
          defer { place = frame.range.upperBound }
          return Step(frame: frame, holds: holds, gap: start..<place)
        }
        place = inner.range.lowerBound
      } else if let found = SealedFrame.next(in: file, from: place + 1, before: file.count) {
        place = found.range.lowerBound
      } else {
        place = start
        return nil
      }
    }
    return nil
  }

  private func frame(at place: Int) -> (frame: SealedFrame, holds: Bool)? {
    let head = place..<min(file.count, place + SealedFrame.emptyLength)
    let frame = file.withBytes(reading: [head]) { SealedFrame($0, at: place) }
    return frame.map { frame in
      (frame, file.withBytes(reading: [frame.range]) { frame.holds(in: $0) })
    }
  }
}
