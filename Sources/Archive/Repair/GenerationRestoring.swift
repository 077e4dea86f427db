/// Makes damaged index segments and footers again where they lay, as far as every byte of them is
/// determined by the data frames and their neighbours.
///
/// Generation by generation: between two footers, what is not a frame can only have been an index
/// segment, a footer, or both. It is made again if what is made is exactly as long as what is
/// there, or there is nothing after it.
struct GenerationRestoring {
  private let storage: any ArchiveStorage
  private let survey: Survey
  /// The form of the file's index segments; nil if nothing that is left tells.
  private var form: IndexForm?
  /// Where index segments were made again.
  private(set) var segments: [UInt64] = []
  /// Where footers were made again.
  private(set) var footers: [UInt64] = []

  /// What the last footer says, whether it held or was made again.
  private var previous: Generation?
  /// The number of the first frame after it.
  private var firstFrame = 0
  /// The index segment after it.
  private var segment: Generation.Segment?
  /// What lay after it and is not a frame.
  private var gap: Range<Int>?
  /// How many frames there are up to here.
  private var frameCount = 0

  init(_ storage: any ArchiveStorage, _ survey: Survey) {
    self.storage = storage
    self.survey = survey
  }

  var hasWritten: Bool { !segments.isEmpty || !footers.isEmpty }

  /// Walks through the file.
  mutating func run(in file: Span<UInt8>) throws {
    form = indexForm(in: file)
    for (count, landmark) in survey.landmarks {
      try pass(count, in: file)
      switch landmark {
      case .segment(let found):
        try restore(in: file)
        segment = found.named
        gap = nil
      case .gap(let range, _): gap = (gap?.lowerBound ?? range.lowerBound)..<range.upperBound
      case .footer(let seen) where seen.isInPlace:
        try restore(nextFooter: seen.frame, in: file)
        end(footer(seen.frame, in: file))
      // It lies between a segment and its footer.
      case .other(let frame, _) where frame.isParity: break
      case .footer, .other, .void: (segment, gap) = (nil, nil)
      }
    }
    try pass(survey.frames.count, in: file)
    try restore(isLast: true, in: file)
    // The segment that was made last may have its footer already.
    if !segments.isEmpty { try storage.synchronize() }
  }

  /// Passes data frames, which end what can have been an index or a footer.
  private mutating func pass(_ count: Int, in file: Span<UInt8>) throws {
    guard count > frameCount else { return }
    try restore(in: file)
    (segment, gap, frameCount) = (nil, nil, count)
  }

  /// The form that an index segment or footer of the file has, which is that of all.
  private func indexForm(in file: Span<UInt8>) -> IndexForm? {
    for (_, landmark) in survey.landmarks {
      if case .segment(let segment) = landmark { return segment.form }
      if case .footer(let seen) = landmark, let footer = footer(seen.frame, in: file) {
        return footer.features.indexForm
      }
    }
    return nil
  }

  /// What a footer says; nil if that cannot be: what follows is not measured by it.
  private func footer(_ frame: SkippableFrame, in file: Span<UInt8>) -> Generation? {
    try? Footer.read(file, frame)
  }

  private mutating func end(_ generation: Generation?) {
    previous = generation ?? previous
    (segment, gap, firstFrame) = (nil, nil, frameCount)
  }

  // MARK: What lay in a gap

  /// Restores what lay in the gap: the segment that a footer after it names; the footer after a
  /// segment, which may be missing altogether at the end of the file; or both.
  private mutating func restore(
    nextFooter: SkippableFrame? = nil, isLast: Bool = false, in file: Span<UInt8>
  ) throws {
    let place = gap ?? (isLast ? file.count..<file.count : nil)
    if let nextFooter {
      guard let gap, let named = footer(nextFooter, in: file)?.segments.last,
        named.offset == UInt64(gap.lowerBound),
        let (bytes, made) = try makeSegment(from: named.base, to: named.end, in: gap, file),
        made.checksum == named.checksum
      else { return }
      try write(bytes, made)
    } else if let segment {
      guard let place, segment.offset <= UInt64(place.lowerBound) else { return }
      try restoreFooter(behind: segment, in: place, isLast: isLast, file)
    } else if let gap {
      try restoreBoth(in: gap, file)
    }
  }

  private mutating func write(_ bytes: [UInt8], _ segment: Generation.Segment) throws {
    try storage.write(bytes.span, at: segment.offset)
    segments.append(segment.offset)
  }

  /// The frames after the last footer, and how many sections there are up to their end.
  private var newFrames: ArraySlice<Survey.Frame> { survey.frames[firstFrame..<frameCount] }
  private var newEnd: UInt64 {
    newFrames.reduce(previous?.sectionCount ?? 0) { $0 + UInt64($1.sectionCount) }
  }

  /// Makes the footer after a segment, if it can be told.
  private mutating func restoreFooter(
    behind segment: Generation.Segment, in gap: Range<Int>, isLast: Bool, _ file: Span<UInt8>
  ) throws {
    let start = gap.lowerBound
    var live = previous?.segments ?? []
    while let last = live.last, last.end > segment.base { live.removeLast() }
    let length = Footer.length(segments: live.count + 1)
    guard live.last?.end ?? 0 == segment.base, live.count < ArchiveLimits.liveSegments,
      isLast || gap.count == length, previous?.number ?? 0 < .max
    else { return }
    let streamLength = newFrames.reduce(
      previous?.streamLength ?? UInt64(survey.header?.frame.contentSize ?? 0)
    ) { $0 + UInt64($1.contentSize) }
    let isDetermined =
      newFrames.allSatisfy(\.isIntact) && hasNoGapBefore(start) && segment.end == newEnd
    let head = head(remainingAt: start, in: file)
    var best: (made: Generation, bytes: [UInt8], alike: Int)?
    for required in requiredFeatures {
      let generation = try Generation(
        after: previous, footerAt: UInt64(start), sectionCount: segment.end,
        streamLength: streamLength, head: head, segments: live + [segment],
        features: FeatureFlags(
          required: required, optional: previous?.features.optional ?? 0))
      // Only what reads back as a footer is written.
      guard (try? Footer.check(generation)) != nil else { continue }
      let bytes = try Footer.encode(generation)
      let alike = bytes.indices.prefix(max(0, file.count - start)).count {
        bytes[$0] == file[start + $0]
      }
      // Where data is lost, what is left of the footer has to agree: its checksum is that of all of
      // it. Where none is, the features are those that it had before, unless most of what is left
      // is as it would be with others.
      let agrees =
        start + length <= file.count && bytes.span.u64(length - 8) == file.u64(start + length - 8)
      if agrees {
        best = (generation, bytes, alike)
        break
      }
      if isDetermined, best.map({ alike > $0.alike && 2 * alike > length }) ?? true {
        best = (generation, bytes, alike)
      }
    }
    guard let best else { return }
    // What the footer vouches for has to be there before it is.
    try storage.synchronize()
    try storage.write(best.bytes.span, at: UInt64(start))
    try storage.synchronize()
    footers.append(UInt64(start))
    end(best.made)
  }

  /// The required features that the next footer may have, those of the one before it first.
  private var requiredFeatures: [UInt64] {
    let ofForm = form == .wide ? 0 : FeatureFlags.packedIndex
    let before = previous?.features.required ?? ofForm
    let (undigested, repaired) = (FeatureFlags.undigested, FeatureFlags.repaired)
    return [before]
      + Set([
        before | undigested, before | repaired, before | undigested | repaired, ofForm | repaired,
      ])
      .subtracting([before]).sorted()
  }

  /// Makes a segment and a footer, if together they are as long as the gap, or the remains of the
  /// footer tell.
  private mutating func restoreBoth(in gap: Range<Int>, _ file: Span<UInt8>) throws {
    guard frameCount > firstFrame, hasNoGapBefore(gap.lowerBound) else { return }
    let live = previous?.segments ?? []
    for kept in (0...live.count).reversed() where kept < ArchiveLimits.liveSegments {
      let length = gap.count - Footer.length(segments: kept + 1)
      let place = gap.prefix(max(0, length))
      guard
        let (bytes, made) = try makeSegment(
          from: kept == 0 ? 0 : live[kept - 1].end, to: newEnd, in: place, file)
      else { continue }
      try write(bytes, made)
      return try restoreFooter(
        behind: made, in: place.upperBound..<gap.upperBound, isLast: false, file)
    }
  }

  // MARK: What determines them

  /// Whether nothing else is missing in the generation.
  private func hasNoGapBefore(_ place: Int) -> Bool {
    let start = previous.map { Int($0.committedLength) } ?? 0
    return survey.gaps.allSatisfy { range in
      range.lowerBound < start || range.lowerBound >= place
        || gap.map { $0.contains(range.lowerBound) } ?? false
    }
  }

  /// The segment of a range of ordinals, in the form that the file has, or that makes it as long as
  /// the place where it lies and most like what is left there; nil if none does, or something in it
  /// is lost.
  private mutating func makeSegment(
    from base: UInt64, to end: UInt64, in place: Range<Int>, _ file: Span<UInt8>
  ) throws -> (bytes: [UInt8], named: Generation.Segment)? {
    var best: (bytes: [UInt8], named: Generation.Segment, form: IndexForm, alike: Int)?
    for form in form.map({ [$0] }) ?? [.packed, .wide] {
      guard
        let (bytes, named) = try makeSegment(form, from: base, to: end, at: place.lowerBound),
        bytes.count == place.count
      else { continue }
      let alike = bytes.indices.count { bytes[$0] == file[place.lowerBound + $0] }
      if alike > best?.alike ?? -1 { best = (bytes, named, form, alike) }
    }
    guard let best else { return nil }
    form = best.form
    return (best.bytes, best.named)
  }

  /// The segment of a range of ordinals; nil if something in it is lost.
  private func makeSegment(
    _ form: IndexForm, from base: UInt64, to end: UInt64, at place: Int
  ) throws -> (bytes: [UInt8], named: Generation.Segment)? {
    guard base < end, end <= survey.sectionCount else { return nil }
    let range = base..<end
    guard !survey.lostOrdinals.contains(where: { $0.overlaps(range) }) else { return nil }
    let frames = survey.framesByOrdinal.filter { range.contains($0.firstOrdinal) }
    guard frames.allSatisfy(\.isIntact), frames.first?.firstOrdinal == base else { return nil }
    var keys = KeyList()
    for key in frames.lazy.flatMap(survey.keys(of:)) { keys.append(key) }
    guard keys.count == range.count else { return nil }
    let builder = IndexSegmentBuilder(
      form, base: base, keys: keys, frames: frames.map(\.entry)[...])
    var bytes: [UInt8] = []
    let checksum = try builder.encode { bytes.append($0) }
    let named = Generation.Segment(
      offset: UInt64(place), base: base, sectionCount: UInt32(builder.count),
      frameCount: UInt32(frames.count), checksum: checksum)
    return (bytes, named)
  }

  /// The newest manifest: the one that the remains of the footer name, if two of three numbers
  /// agree, or that follows from what is there.
  private func head(remainingAt place: Int, in file: Span<UInt8>) -> Generation.Head? {
    let manifests = survey.manifests
    let meant = Footer.headClaim(in: file, at: place).flatMap { claim in
      manifests.lazy.compactMap { survey.head($0) }
        .first { claim.means($0) && $0.frameOffset < UInt64(place) }
    }
    return meant ?? survey.head(of: manifests, after: previous, in: firstFrame..<frameCount)
  }
}

extension Survey.Frame {
  /// The frame as a table has it.
  ///
  /// One that does not hold is not to pass for one that does: its checksum is the complement.
  var entry: FrameEntry {
    FrameEntry(
      offset: offset, checksum: isIntact ? checksum : ~checksum, firstOrdinal: firstOrdinal,
      storedLength: storedLength)
  }
}
