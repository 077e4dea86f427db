internal import IPLD

/// The parts of a file that do not hold and may be restored.
extension Survey {
  /// Where a damaged note lies: what follows frame 0 is not a frame and exactly as long, and no
  /// section can have been there.
  var damagedNote: Int? {
    guard let header, header.failure == nil, case (0, .gap(let gap, _))? = landmarks.first,
      gap == header.frame.end..<header.frame.end + ArchiveNote.frame.count,
      isCertain, lostOrdinals.first?.lowerBound != 0
    else { return nil }
    return gap.lowerBound
  }

  /// Where the last thing ends that holds, or of which something is left.
  var end: Int {
    var end = max(header.map { $0.failure == nil ? $0.frame.end : 0 } ?? start, salvagedEnd)
    if let last = frames.last { end = max(end, Int(last.end)) }
    for (_, landmark) in landmarks.suffix(2) {
      if case .gap = landmark { continue }
      end = max(end, landmark.range.upperBound)
    }
    return end
  }

  /// The ordinals that no intact frame holds, and those of large sections that are not all there.
  var lost: [Range<UInt64>] {
    lostOrdinals
      + incomplete.map { frames[$0].firstOrdinal }.filter { $0 != .max }.map { $0..<$0 + 1 }
  }

  /// The newest manifest by the last footer that holds, wherever it stands.
  var newestNamed: CID? {
    footers.filter { $0.number > 0 }.max { $0.isOlder(than: $1) }?.head
  }

  /// Everything that is not a frame, or one that does not hold.
  func rubble(in file: Span<UInt8>) -> [Range<Int>] {
    let decoder = FrameDecoder()
    let broken = frames.filter { !$0.isIntact }.map { Int($0.offset)..<Int($0.end) }
    // One that says something out of place is a frame anyway.
    return gaps
      + broken.filter { range in
        let found = try? DataFrame(file, at: range.lowerBound, limit: range.upperBound)
        return !(found.map { decoder.holds($0, in: file) } ?? false)
      }
  }
}
