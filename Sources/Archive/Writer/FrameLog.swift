/// The tail of the file as the writer sees it: where it ends, and what has been appended since the
/// last footer.
///
/// 1. Everything before ``end`` has been handed to the storage; nothing after it has been, or it
///    has been cut off.
/// 2. ``frames`` describes every data frame appended since the last footer, in file order, frame 0
///    excepted.
/// 3. ``streamLength`` counts the content of all data frames in the file.
struct FrameLog {
  let storage: any ArchiveStorage
  /// Where the next frame goes.
  private(set) var end: UInt64
  private(set) var frames: [FrameEntry] = []
  private(set) var streamLength: UInt64
  /// Whether the last wait for a footer failed, so that it is unknown whether it counts.
  private(set) var isUncertain = false
  /// The requested parity, instead of that which follows from the file.
  var parity: ParityPlan.Request?

  /// A state to go back to.
  typealias Mark = (end: UInt64, frameCount: Int, streamLength: UInt64)

  /// The state as it is.
  var mark: Mark { (end, frames.count, streamLength) }

  /// Writes a data frame.
  mutating func append(_ stored: Span<UInt8>, contentSize: Int, firstOrdinal: UInt64) throws {
    let entry = FrameEntry(
      offset: end, checksum: XXH64.hash(stored), firstOrdinal: firstOrdinal,
      storedLength: UInt32(stored.count))
    try append(stored)
    frames.append(entry)
    streamLength += UInt64(contentSize)
  }

  /// Writes bytes that are in no frame table.
  mutating func append(_ bytes: Span<UInt8>) throws {
    // Writing after the end of a file that was cut off would fill the gap with zeros.
    guard try storage.size >= end else { throw ArchiveError(.changedMeanwhile) }
    try storage.write(bytes, at: end)
    end += UInt64(bytes.count)
  }

  /// Writes the index segment of what is new, merged with live ones that have become too many.
  ///
  /// - Parameters:
  ///   - live: The segments there are.
  ///   - newSections: How many sections are new.
  ///   - newFrames: How many frames.
  ///   - builder: Makes the segment of everything from an ordinal on, at which a live segment or
  ///     what is new begins.
  /// - Returns: What is live now, as a footer says it.
  func appendIndex(
    to live: [Generation.Segment], newSections: Int, newFrames: Int,
    _ builder: (UInt64) -> IndexSegmentBuilder
  ) throws -> (log: FrameLog, live: [Generation.Segment]) {
    let kept = live.prefix(
      IndexSegmentBuilder.keptCount(live, newSections: newSections, newFrames: newFrames))
    guard kept.count < ArchiveLimits.liveSegments else { throw ArchiveError(.tooManySections) }
    let segment = builder(kept.last?.end ?? 0)
    var log = self
    let checksum = try segment.encode { piece in try log.append(piece) }
    let named = Generation.Segment(
      offset: end, base: segment.base, sectionCount: UInt32(segment.count),
      frameCount: UInt32(segment.frameCount), checksum: checksum)
    return (log, kept + [named])
  }

  /// Ends a generation: writes its parity, waits until all that is written is on the medium, writes
  /// the footer, and waits again.
  ///
  /// The parity protects the footer, too, which says nothing of it but how long it is.
  ///
  /// - Parameters:
  ///   - previous: The generation before; nil for the first.
  ///   - sectionCount: How many sections the file has.
  ///   - head: The newest manifest.
  ///   - segments: The live index segments.
  ///   - required: Required features beside those that the file has.
  ///   - optional: Optional ones.
  @discardableResult
  mutating func commit(
    after previous: Generation?, sectionCount: UInt64, head: Generation.Head?,
    segments: [Generation.Segment], required: UInt64, optional: UInt64 = 0
  ) throws -> Generation {
    let map = { [storage] in try storage.map() }
    var asked = parity
    if case .percent(let percent) = parity, storage.keepParity(percent: percent) { asked = nil }
    let plan = try ParityPlan(asked, after: previous, to: end, in: map())
    let groups = plan?.groups(at: end, footerLength: Footer.length(segments: segments.count)) ?? []
    let generation = try Generation(
      after: previous, footerAt: groups.last?.end ?? end, sectionCount: sectionCount,
      streamLength: streamLength, head: head, segments: segments,
      features: (previous?.features ?? .ofNewFile).adding(
        required: required, optional: optional | (plan == nil ? 0 : FeatureFlags.protected)))
    let footer = try Footer.encode(generation)
    for group in groups {
      var encoder = try ParityEncoder(
        group, of: map(), footer: group.footerLength > 0 ? footer : [])
      try encoder.write { try append($0) }
    }
    try storage.synchronize()
    try append(footer.span)
    isUncertain = true
    try storage.synchronizeFooter()
    isUncertain = false
    return generation
  }

  /// Makes sure that the file is as long as it was made, and still the one that goes by its name.
  func checkEnd() throws {
    guard try storage.size == end, try storage.isInPlace else {
      throw ArchiveError(.changedMeanwhile)
    }
  }

  /// Cuts the file back to what it was.
  mutating func cutBack(to mark: Mark) throws {
    try storage.truncate(to: mark.end)
    end = mark.end
    frames.removeLast(frames.count - mark.frameCount)
    streamLength = mark.streamLength
  }

  /// The frame in which the section `ordinal` begins; nil if it is in none of these.
  func frame(of ordinal: UInt64) -> FrameEntry? {
    let next = frames.partitioningIndex { $0.firstOrdinal >= ordinal }
    if next < frames.count, frames[next].firstOrdinal == ordinal { return frames[next] }
    return next == 0 ? nil : frames[next - 1]
  }
}
