/// When index segments are merged.
///
/// Every backup adds a segment. A lookup asks each of them, and every footer names them all, so
/// they must not become many; but merging writes them again. As long as there are few, nothing is
/// merged. Beyond that the newest ones become one, as many as it takes until the one before is as
/// large as they are together: so sizes fall off geometrically, and in a thousand generations of
/// like size an entry is written four times.
enum SegmentMerging {
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
