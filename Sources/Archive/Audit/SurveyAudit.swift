internal import IPLD

/// Compares what a survey found with what the footers and the index say.
///
/// Damage that was superseded, in a file that says it was repaired, is counted and is not a
/// finding: an ordinal whose section was written again, and what lies before the last footer and is
/// named by nothing.
struct SurveyAudit {
  var verification: ArchiveVerification
  let survey: Survey
  let reader: ArchiveReader
  let generation: Generation
  /// Up to where the file is committed; all of it if nothing is.
  let end: Int
  /// The live segments, if they can be believed.
  var segments: [IndexSegment] = []
  /// The numbers of the frames that the index lists and that are as it says, by their offsets.
  var listed: [UInt64: Int] = [:]
  /// The frames that the index lists and that do not hold, in file order, and where they begin.
  var broken: [FrameEntry] = []
  var brokenPlaces: Set<UInt64> = []
  /// The frames among these that were superseded.
  var superseded: [Range<Int>] = []

  init(_ survey: Survey, _ reader: ArchiveReader, isComplete: Bool) {
    self.survey = survey
    self.reader = reader
    generation = reader.generation
    end = generation.number == 0 ? survey.limit : Int(generation.committedLength)
    verification = ArchiveVerification(generation: generation, isComplete: isComplete)
  }

  /// Compares everything.
  mutating func run(in file: Span<UInt8>) throws {
    openIndex(in: file)
    if !segments.isEmpty {
      compareFrames(in: file)
      try walkOrdinals(in: file)
      if verification.isComplete { try compareSegments(in: file) }
    }
    noteFrames()
    noteLandmarks(in: file)
    if generation.number > 0 {
      checkFooters(in: file)
      if !segments.isEmpty { try checkHeads(in: file) }
    }
    try noteTail(in: file)
    count()
    verification.sortFindings()
  }

  /// Whether the file was repaired, so that what lies before its last footer need not count.
  var isRepaired: Bool { generation.features.isRepaired }

  /// Whether what was found wrong at a place counts: it is committed, and was not superseded.
  private func counts(_ place: UInt64?) -> Bool {
    guard let place else { return true }
    return place < UInt64(end) && !superseded.has(Int(place))
  }

  private mutating func noteFrames() {
    var told = Set<UInt64>()
    for error in survey.malformations where counts(error.offset) {
      if let place = error.offset { told.insert(place) }
      verification.note(error)
    }
    let gaps = survey.gaps
    for entry in broken where counts(entry.offset) && !told.contains(entry.offset) {
      let isGap = gaps.has(Int(clamping: entry.offset))
      verification.note(
        isGap
          ? .damagedFrame("no frame is there") : .damagedFrame("its checksum does not match"),
        at: entry.offset)
    }
    for (cid, place) in survey.damaged {
      guard counts(place), !isHeldElsewhere(cid) else { continue }
      verification.noteDamaged(cid, at: place)
    }
    for (cid, place) in survey.unverifiable where counts(place) {
      verification.noteUnverifiable(cid, at: place)
    }
    verification.unverifiableCount = survey.unverifiableCount
  }

  /// Whether a section that is damaged was written again.
  private func isHeldElsewhere(_ cid: CID) -> Bool {
    // One that cannot be read there either is damaged.
    isRepaired && (try? reader.read(cid) { _ in }) ?? false
  }

  private mutating func noteLandmarks(in file: Span<UInt8>) {
    var voided: [Range<Int>] = []
    for (_, landmark) in survey.landmarks where landmark.range.lowerBound < end {
      guard let flaw = landmark.flaw else { continue }
      let range = landmark.range
      if case .gap = landmark {
        if foreignCount(range.clamped(to: 0..<end)) > 0
          || isRepaired && SkippableFrame.wasVoid(range, in: file)
        {
          verification.note(flaw)
        }
        continue
      }
      let isVoid = if case .void = landmark { true } else { false }
      if isVoid || isRepaired { voided.append(range) }
      if !isRepaired { verification.note(flaw) }
    }
    // The index may still list a frame that is a void by now.
    verification.supersededBytes = (voided + superseded).merged().reduce(0) {
      $0 + UInt64($1.count)
    }
  }

  /// How many bytes of a gap are of no frame that the index lists.
  private func foreignCount(_ gap: Range<Int>) -> Int {
    // The first that ends after the beginning of the gap, if they do not overlap, as honest ones do
    // not.
    let first = broken.partitioningIndex { $0.end > UInt64(gap.lowerBound) }
    var count = gap.count
    for entry in broken[first...] {
      guard entry.offset < UInt64(gap.upperBound) else { break }
      let range = Int(clamping: entry.offset)..<Int(clamping: entry.end)
      count -= range.clamped(to: gap).count
    }
    return count
  }

  private mutating func noteTail(in file: Span<UInt8>) throws {
    if generation.number == 0 { return verification.note(.noFooter, at: nil) }
    guard survey.limit > end else { return }
    let further = survey.beginnings(in: file).dropFirst()
    for beginning in further { verification.note(.furtherArchive, at: UInt64(beginning)) }
    // What is in those is not of this one.
    let limit = further.first ?? survey.limit
    let moved = try survey.movedFooters(
      after: generation, besides: reader.knownManifests)
    for footer in moved where end..<max(end, limit) ~= footer.frame.offset {
      verification.note(.movedFooter, at: UInt64(footer.frame.offset))
    }
    guard limit > end else { return }
    if let damage = reader.recovery?.damagedEnd { return verification.note(damage) }
    verification.note(
      .interruptedTail(bytes: UInt64(limit - end)), at: UInt64(end), .interruptedTail)
  }

  private mutating func count() {
    verification.byteCount = UInt64(end)
    for frame in survey.frames where frame.offset < UInt64(end) && frame.isIntact {
      verification.frameCount += 1
      if verification.isComplete { verification.sectionCount += UInt64(frame.sectionCount) }
    }
    guard verification.isComplete else { return }
    verification.sectionCount += UInt64(survey.salvaged.count)
    verification.sectionCount -= min(
      verification.sectionCount,
      UInt64(survey.mismatchCount + survey.incomplete.count))
  }
}
