internal import IPLD

/// Ends what lies in a file with an index segment and a footer, behind everything that is there.
struct GenerationEnding {
  let storage: any ArchiveStorage
  /// What the last footer says.
  let previous: Generation?

  /// Writes an index segment at the end of the file, and a footer behind it.
  ///
  /// - Parameters:
  ///   - segment: The segment; nil if there is nothing to cover anew.
  ///   - place: The end of the file.
  ///   - kept: The live segments that stay before it.
  ///   - sectionCount: How many ordinals there are.
  ///   - streamLength: How long the stream is.
  ///   - head: The newest manifest.
  ///   - required: Required features beside those there were.
  /// - Throws: ``ArchiveError``, and what the storage throws.
  func write(
    _ segment: MergedSegment?, at place: UInt64, keeping kept: [Generation.Segment],
    sectionCount: UInt64, streamLength: UInt64, head: Generation.Head?, required: UInt64 = 0
  ) throws {
    var live = kept
    var log = FrameLog(storage: storage, end: place, streamLength: 0)
    if let segment, segment.count > 0 {
      let checksum = try segment.encode { piece in try log.append(piece) }
      live.append(
        Generation.Segment(
          offset: place, base: segment.base, sectionCount: UInt32(segment.count),
          frameCount: UInt32(segment.frameCount), checksum: checksum))
    }
    try writeFooter(
      at: log.end, live, sectionCount: sectionCount, streamLength: streamLength, head: head,
      required: required)
  }

  /// Writes a footer behind an index segment that is there.
  func write(
    behind segment: IndexSegment, keeping kept: [Generation.Segment], sectionCount: UInt64,
    streamLength: UInt64, head: Generation.Head?, required: UInt64 = 0
  ) throws {
    try writeFooter(
      at: UInt64(segment.frame.end), kept + [segment.named], sectionCount: sectionCount,
      streamLength: streamLength, head: head, required: required)
  }

  private func writeFooter(
    at place: UInt64, _ live: [Generation.Segment], sectionCount: UInt64, streamLength: UInt64,
    head: Generation.Head?, required: UInt64
  ) throws {
    guard live.count <= ArchiveLimits.liveSegments else { throw ArchiveError(.tooManySections) }
    let features = previous?.features ?? .ofNewFile
    let (number, overflow) = (previous?.number ?? 0).addingReportingOverflow(1)
    guard !overflow else { throw ArchiveError(.tooManyGenerations) }
    let all = features.required | required
    let generation = Generation(
      number: number, footerOffset: place, previousFooterOffset: previous?.footerOffset,
      committedLength: place + UInt64(Footer.length(segments: live.count)),
      sectionCount: sectionCount, streamLength: streamLength, head: head, segments: live,
      minorVersion: max(previous?.minorVersion ?? Footer.minorVersion, all == 0 ? 0 : 1),
      features: FeatureFlags(
        required: all, optional: features.optional))
    // What the footer vouches for has to be on the medium before it is.
    try storage.synchronize()
    let footer = try Footer.encode(generation)
    try storage.write(footer.span, at: place)
    try storage.synchronizeFooter()
  }

  /// Makes bytes that count no more into frames that decoders pass over; fewer than eight stay as
  /// they are.
  ///
  /// - Returns: How many bytes were made into such frames.
  static func void(_ range: Range<Int>, in storage: any ArchiveStorage) throws -> Int {
    var start = range.lowerBound
    while range.upperBound - start >= VoidFrame.headerLength {
      // In pieces that fit into memory, of which the last is long enough, too.
      let rest = range.upperBound - start
      let length = rest < maximumVoid + VoidFrame.headerLength ? rest : maximumVoid
      let bytes = try storage.read(length, at: UInt64(start))
      let patches = VoidFrame.patches(for: bytes.span)
      for (offset, patch) in patches {
        try storage.write(patch.span, at: UInt64(start + offset))
      }
      start += length
    }
    return start - range.lowerBound
  }

  private static let maximumVoid = 4 << 20
}

extension ArchiveStorage {
  /// Waits for a footer that was written last.
  ///
  /// - Throws: ``ArchiveError`` with the reason `commitUncertain` if the wait fails: whether the
  ///   footer counts shows when the file is opened again.
  func synchronizeFooter() throws {
    do {
      try synchronize()
    } catch let error as ArchiveError {
      guard case .system(_, let code) = error.reason else { throw error }
      throw ArchiveError(.commitUncertain(code: code))
    }
  }
}

extension IndexSegment {
  /// The segment as a footer names it.
  var named: Generation.Segment {
    Generation.Segment(
      offset: UInt64(frame.offset), base: base, sectionCount: UInt32(count),
      frameCount: UInt32(frameCount), checksum: frame.checksum)
  }
}
