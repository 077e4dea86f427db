internal import Archive

/// The frames of a sealed file one after another, and after damage the next one by its magic.
struct SealedFrameWalk {
  /// A frame, and what lies before it.
  struct Step {
    let frame: SealedFrame
    /// Whether its checksum holds.
    let holds: Bool
    /// Bytes between the frame before and this one that are not a frame.
    let gap: Range<Int>
    /// The last frame in the gap, if one begins there that reaches over this one.
    var torn: SealedFrame?
  }

  /// Frames whose checksums were compared before, by where they begin: where each ends, and whether
  /// it holds.
  typealias Compared = [Int: (end: Int, holds: Bool)]

  private let file: MappedFile
  private let compared: Compared
  /// Where the next frame should begin.
  private(set) var place: Int

  init(_ file: MappedFile, from place: Int, compared: Compared = [:]) {
    (self.file, self.place, self.compared) = (file, place, compared)
  }

  /// The next frame; nil if no more follows.
  mutating func next() -> Step? {
    let start = place
    var torn: SealedFrame?
    while place < file.count {
      if let (frame, holds) = frame(at: place) {
        // A damaged length may reach over the frames that follow.
        let inner =
          holds
          ? nil : SealedFrame.next(in: file, from: place + 1, before: frame.range.upperBound)
        guard let inner else {
          defer { place = frame.range.upperBound }
          return Step(frame: frame, holds: holds, gap: start..<place, torn: torn)
        }
        torn = frame
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
      if let known = compared[place], known.end == frame.range.upperBound {
        return (frame, known.holds)
      }
      return (frame, file.withBytes(reading: [frame.range]) { frame.holds(in: $0) })
    }
  }
}
