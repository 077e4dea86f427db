internal import IPLD

/// Compares what a survey found with what the footers and the index say.
///
/// Damage that was superseded, in a file that says it was repaired, is counted and is no finding: an ordinal
/// whose section was written again, and what lies before the last footer and is named by nothing.
struct SurveyAudit {
  private(set) var verification: ArchiveVerification
  private let survey: Survey
  private let reader: ArchiveReader
  private let generation: Generation
  /// Up to where the file is committed; all of it if nothing is.
  private let end: Int
  /// The live segments, if they can be believed.
  private var segments: [IndexSegment] = []
  /// The numbers of the frames that the index lists and that are as it says, by their offsets.
  private var listed: [UInt64: Int] = [:]
  /// The frames that the index lists and that do not hold.
  private var broken: [FrameEntry] = []
  /// The frames among these that were superseded.
  private var superseded: [Range<Int>] = []

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
      try findSuperseded(in: file)
      if verification.isComplete { try compareSegments(in: file) }
    }
    noteFrames()
    noteLandmarks(in: file)
    if generation.number > 0 {
      checkFooters(in: file)
      if !segments.isEmpty { try checkHeads(in: file) }
    }
    noteTail()
    count()
    verification.sortFindings()
  }

  // MARK: The index

  private mutating func openIndex(in file: Span<UInt8>) {
    guard generation.number > 0 else { return }
    do throws(ArchiveError) {
      let index = try ArchiveIndex(generation, in: file)
      if let damaged = index.firstDamaged(in: file) {
        throw ArchiveError(
          .damagedIndex("its checksum does not hold"), offset: UInt64(damaged.frame.offset))
      }
      segments = index.segments
    } catch {
      verification.note(.damaged, error)
    }
  }

  private mutating func compareFrames(in file: Span<UInt8>) {
    var found: [UInt64: Int] = [:]
    for (number, frame) in survey.frames.enumerated() where frame.offset < UInt64(end) {
      found[frame.offset] = number
    }
    for segment in segments {
      for index in 0..<segment.frameCount {
        let entry = segment.frameEntry(index, in: file)
        if let number = found[entry.offset], isAsListed(survey.frames[number], entry) {
          listed[entry.offset] = number
        } else {
          broken.append(entry)
        }
      }
    }
    let brokenOffsets = Set(broken.map(\.offset))
    for frame in survey.frames
    where frame.offset < UInt64(end) && frame.state.isIntact && listed[frame.offset] == nil {
      guard !brokenOffsets.contains(frame.offset) else { continue }
      verification.note(
        .damaged, .damagedIndex("no frame table knows a frame that is there"), at: frame.offset)
    }
    broken.sort { $0.offset < $1.offset }
  }

  private func isAsListed(_ frame: Survey.Frame, _ entry: FrameEntry) -> Bool {
    frame.checksum == entry.checksum && frame.storedLength == entry.storedLength
      && frame.state.isIntact
  }

  /// Finds the ordinals that are lost, and the damaged frames of which none is.
  private mutating func findSuperseded(in file: Span<UInt8>) throws {
    let isRepaired = generation.features.isRepaired
    let damaged = Set(broken.map(\.offset))
    let salvaged = salvagedIndices
    defer { superseded.sort { $0.lowerBound < $1.lowerBound } }
    for segment in segments {
      for index in 0..<segment.frameCount {
        let entry = segment.frameEntry(index, in: file)
        let next =
          index + 1 < segment.frameCount
          ? segment.frameEntry(index + 1, in: file).firstOrdinal : segment.end
        // A frame with the same number as the next holds part of one section.
        let range = entry.firstOrdinal..<max(next, entry.firstOrdinal + 1)
        if damaged.contains(entry.offset) {
          let isSuperseded =
            isRepaired && range.count <= entry.maximumSectionCount
            && range.allSatisfy { reader.isSuperseded($0, damaged) }
          if isSuperseded {
            superseded.append(Int(entry.offset)..<Int(clamping: entry.end))
          } else {
            noteLost(range, salvaged[entry.offset] ?? [])
          }
        } else if let number = listed[entry.offset] {
          let frame = survey.frames[number]
          guard frame.state == .sections, entry.firstOrdinal < next else { continue }
          let covered = entry.firstOrdinal + UInt64(frame.sectionCount)
          if covered < next {
            noteMissing(covered..<next, isRepaired, damaged, at: entry.offset)
          } else if covered > next, verification.isComplete {
            verification.note(
              .damaged, .damagedIndex("two frames have the same sections"), at: entry.offset)
          }
        }
      }
    }
  }

  /// Which sections of damaged frames are left, by the offsets of these.
  private var salvagedIndices: [UInt64: [Int]] {
    var indices: [UInt64: [Int]] = [:]
    for section in survey.salvaged {
      indices[survey.frames[section.frame].offset, default: []].append(section.index)
    }
    return indices
  }

  private mutating func noteLost(_ range: Range<UInt64>, _ salvaged: [Int]) {
    var start = range.lowerBound
    for index in salvaged {
      let saved = range.lowerBound + UInt64(index)
      guard saved >= start, saved < range.upperBound else { continue }
      verification.noteDamaged(start..<saved)
      start = saved + 1
    }
    verification.noteDamaged(start..<max(start, range.upperBound))
  }

  /// Takes note of ordinals that no frame holds.
  private mutating func noteMissing(
    _ range: Range<UInt64>, _ isRepaired: Bool, _ damaged: Set<UInt64>, at place: UInt64
  ) {
    guard verification.isComplete else { return }
    guard isRepaired else {
      return verification.note(
        .damaged, .damagedIndex("it counts sections that are not there"), at: place)
    }
    for ordinal in range.prefix(ArchiveVerification.listLimit)
    where !reader.isSuperseded(ordinal, damaged) {
      verification.noteDamaged(ordinal..<ordinal + 1)
      verification.note(.damaged, .lostSection(ordinal), at: nil)
    }
  }

  /// Makes every live segment again from the frames, which must give the same bytes.
  private mutating func compareSegments(in file: Span<UInt8>) throws {
    var repeated = Set<UInt64>()
    for (number, segment) in segments.enumerated() {
      let table = (0..<segment.frameCount).map { segment.frameEntry($0, in: file) }
      let isSorted = zip(table, table.dropFirst()).allSatisfy {
        ($0.firstOrdinal, $0.offset) < ($1.firstOrdinal, $1.offset)
      }
      let keys = keys(of: segment, table, in: file)
      let builder = IndexSegmentBuilder(base: segment.base, keys: keys, frames: table[...])
      if !isSorted
        || !builder.isEncoded(in: file, at: segment.frame.offset, length: segment.frame.length)
      {
        verification.note(
          .damaged, .damagedIndex("a segment is not what the frames make it"),
          at: UInt64(segment.frame.offset))
      }
      repeated.formUnion(builder.repeatedKeys(keys))
      for older in segments[..<number] {
        for index in 0..<keys.count where older.mayContain(keys[index], in: file) {
          repeated.insert(keys[index])
        }
      }
    }
    try checkRepeated(repeated)
  }

  /// The keys of a segment's sections by what is there; those of lost ones as the segment has them.
  private func keys(of segment: IndexSegment, _ table: [FrameEntry], in file: Span<UInt8>)
    -> KeyList
  {
    var keys = [UInt64?](repeating: nil, count: segment.count)
    for entry in table {
      guard let number = listed[entry.offset], survey.frames[number].state == .sections else {
        continue
      }
      let frame = survey.frames[number]
      let first = Int(clamping: entry.firstOrdinal - segment.base)
      for index in 0..<Int(frame.sectionCount) where first + index < keys.count {
        keys[first + index] = survey.keys[frame.firstKey + index]
      }
    }
    var list = KeyList()
    if keys.contains(where: { $0 == nil }) {
      for index in 0..<segment.count {
        let entry = segment.entry(index, in: file)
        let ordinal = Int(entry & 0xffff_ffff)
        if ordinal < keys.count, keys[ordinal] == nil { keys[ordinal] = entry & ~0xffff_ffff }
      }
    }
    for key in keys { list.append(key ?? 0) }
    return list
  }

  /// Looks at sections with equal keys: the same bytes may be there under several CIDs, but no CID
  /// twice, unless the earlier is damaged.
  private mutating func checkRepeated(_ keys: Set<UInt64>) throws {
    for key in keys.sorted() where SectionKey.short(key) != .max {
      do {
        var seen = Set<CID>()
        for ordinal in try reader.candidates(SectionKey(prefix: key)) {
          guard let cid = try reader.intactCID(of: ordinal) else { continue }
          if !seen.insert(cid).inserted {
            verification.note(.damaged, .repeatedSection(cid), at: nil)
          }
        }
      } catch let error as ArchiveError {
        verification.note(.damaged, error)
      }
    }
  }

  // MARK: What was found wrong

  /// Whether what was found wrong at a place counts: it is committed, and was not superseded.
  private func counts(_ place: UInt64?) -> Bool {
    guard let place else { return true }
    return place < UInt64(end) && !superseded.has(Int(place))
  }

  private mutating func noteFrames() {
    var told = Set<UInt64>()
    for error in survey.observations.frames where counts(error.offset) {
      if let place = error.offset { told.insert(place) }
      verification.note(.damaged, error)
    }
    let gaps = survey.landmarks.compactMap { entry in
      if case .gap(let range, _) = entry.landmark { range } else { nil }
    }
    for entry in broken where counts(entry.offset) && !told.contains(entry.offset) {
      let isGap = gaps.has(Int(clamping: entry.offset))
      verification.note(
        .damaged,
        isGap
          ? .damagedFrame("no frame is there") : .damagedFrame("its checksum does not hold"),
        at: entry.offset)
    }
    for (cid, place) in survey.observations.damaged {
      guard counts(place), !isHeldElsewhere(cid) else { continue }
      verification.noteDamaged(cid, at: place)
    }
    for (cid, place) in survey.observations.unverifiable where counts(place) {
      verification.noteUnverifiable(cid, at: place)
    }
    verification.unverifiableCount = survey.observations.unverifiableCount
  }

  /// Whether a section that is damaged was written again.
  private func isHeldElsewhere(_ cid: CID) -> Bool {
    guard generation.features.isRepaired else { return false }
    do {
      return try reader.read(cid) { _ in }
    } catch {
      return false
    }
  }

  private mutating func noteLandmarks(in file: Span<UInt8>) {
    let isRepaired = generation.features.isRepaired
    for (_, landmark) in survey.landmarks where landmark.range.lowerBound < end {
      switch landmark {
      case .segment: break
      case .footer(let footer):
        guard !footer.isInPlace else { continue }
        if isRepaired {
          verification.supersededBytes += UInt64(footer.frame.length)
        } else {
          verification.note(.damaged, .movedFooter, at: UInt64(footer.frame.offset))
        }
      case .other(let frame, let error?):
        if isRepaired {
          verification.supersededBytes += UInt64(frame.length)
        } else {
          verification.note(.damaged, error)
        }
      case .other: break
      case .void(let range):
        verification.supersededBytes += UInt64(range.count)
        if !isRepaired {
          verification.note(
            .damaged, .foreignBytes(UInt64(range.count)), at: UInt64(range.lowerBound))
        }
      case .gap(let range, let error):
        let rest = range.clamped(to: 0..<end)
        if foreignCount(rest) > 0 { verification.note(.damaged, error) }
      }
    }
    for range in superseded { verification.supersededBytes += UInt64(range.count) }
  }

  /// How many bytes of a gap are of no frame that the index lists.
  private func foreignCount(_ gap: Range<Int>) -> Int {
    // The first that ends behind the beginning of the gap, if they do not overlap, as honest ones do not.
    var (low, high) = (0, broken.count)
    while low < high {
      let middle = low + (high - low) / 2
      if broken[middle].end <= UInt64(gap.lowerBound) { low = middle + 1 } else { high = middle }
    }
    var count = gap.count
    for entry in broken[low...] {
      guard entry.offset < UInt64(gap.upperBound) else { break }
      let range = Int(clamping: entry.offset)..<Int(clamping: entry.end)
      count -= range.clamped(to: gap).count
    }
    return count
  }

  // MARK: Footers

  private mutating func checkFooters(in file: Span<UInt8>) {
    // What lies before the last footer of a repaired file need not count.
    guard !generation.features.isRepaired else { return }
    var count: UInt64 = 0
    var last: Generation?
    let isWhole = survey.isTiled && listed.count == survey.frames.count
    var frame = 0
    var (sectionCount, streamLength) = (
      UInt64(0), UInt64(survey.header?.frame.contentSize ?? 0)
    )
    var isBroken = false
    for (frameCount, landmark) in survey.landmarks where landmark.range.lowerBound < end {
      while frame < frameCount {
        sectionCount += UInt64(survey.frames[frame].sectionCount)
        streamLength += UInt64(survey.frames[frame].contentSize)
        frame += 1
      }
      if case .gap = landmark { isBroken = true }
      guard case .footer(let seen) = landmark, seen.isInPlace else { continue }
      count += 1
      do throws(ArchiveError) {
        let footer = try Footer.read(file, seen.frame)
        let place = UInt64(seen.frame.offset)
        if !isBroken {
          guard footer.number == count, footer.previousFooterOffset == last?.footerOffset else {
            throw ArchiveError(
              .malformedFooter("it does not follow the one before it"), offset: place)
          }
        }
        if isWhole, verification.isComplete {
          guard footer.sectionCount == sectionCount, footer.streamLength == streamLength else {
            throw ArchiveError(
              .malformedFooter(
                "it counts \(footer.sectionCount) sections in \(footer.streamLength) bytes, and there are "
                  + "\(sectionCount) in \(streamLength)"), offset: place)
          }
        }
        // The segments it names may be dead by now, and still have to be there.
        _ = try ArchiveIndex(footer, in: file)
        last = footer
      } catch {
        verification.note(.damaged, error)
      }
    }
    if !isBroken, count != generation.number {
      verification.note(
        .damaged, .malformedFooter("\(count) footers make \(generation.number) generations"),
        at: generation.footerOffset)
    }
  }

  /// Whether the manifests that footers name are where they say.
  private mutating func checkHeads(in file: Span<UInt8>) throws {
    var checked: Generation.Head?
    for (_, landmark) in survey.landmarks where landmark.range.upperBound <= end {
      guard case .footer(let seen) = landmark, seen.isInPlace else { continue }
      // What lies before the last footer of a repaired file need not count.
      guard !generation.features.isRepaired || seen.frame.end == end else { continue }
      do throws(ArchiveError) {
        let footer = try Footer.read(file, seen.frame)
        guard let head = footer.head, head != checked else { continue }
        checked = head
        guard let number = listed[head.frameOffset] else {
          // That its frame is damaged has been told.
          guard !isBroken(at: head.frameOffset) else { continue }
          throw ArchiveError(
            .malformedFooter("its manifest is not where it says"), offset: footer.footerOffset)
        }
        guard verification.isComplete else { continue }
        let frame = survey.frames[number]
        guard frame.state == .sections, frame.sectionCount == 1,
          try cid(of: head.ordinal) == head.cid,
          isOrdinal(head.ordinal, of: frame.offset, in: file)
        else {
          throw ArchiveError(
            .malformedFooter("its manifest is not where it says"), offset: footer.footerOffset)
        }
      } catch {
        // What cannot be read of a footer has been told.
        if case .malformedFooter = error.reason { verification.note(.damaged, error) }
      }
    }
  }

  private func cid(of ordinal: UInt64) throws(ArchiveError) -> CID? {
    do {
      return try reader.intactCID(of: ordinal)
    } catch {
      throw error as? ArchiveError ?? ArchiveError(.unknownOrdinal(ordinal))
    }
  }

  private func isBroken(at offset: UInt64) -> Bool {
    var (low, high) = (0, broken.count)
    while low < high {
      let middle = low + (high - low) / 2
      if broken[middle].offset < offset { low = middle + 1 } else { high = middle }
    }
    return low < broken.count && broken[low].offset == offset
  }

  /// Whether the index says that a frame begins with an ordinal.
  private func isOrdinal(_ ordinal: UInt64, of offset: UInt64, in file: Span<UInt8>) -> Bool {
    guard let segment = segments.first(where: { $0.base <= ordinal && ordinal < $0.end }),
      let index = segment.frameIndex(of: ordinal, in: file)
    else { return false }
    let entry = segment.frameEntry(index, in: file)
    return entry.offset == offset && entry.firstOrdinal == ordinal
  }

  // MARK: The end

  private mutating func noteTail() {
    if generation.number == 0 {
      return verification.note(.damaged, .noFooter, at: nil)
    }
    guard survey.limit > end else { return }
    for (_, landmark) in survey.landmarks where landmark.range.lowerBound >= end {
      if case .footer(let footer) = landmark, !footer.isInPlace, footer.number > generation.number {
        verification.note(.damaged, .movedFooter, at: UInt64(footer.frame.offset))
      }
    }
    verification.note(
      .interruptedTail, .interruptedTail(bytes: UInt64(survey.limit - end)), at: UInt64(end))
  }

  private mutating func count() {
    verification.byteCount = UInt64(end)
    for frame in survey.frames where frame.offset < UInt64(end) && frame.state.isIntact {
      verification.frameCount += 1
      if verification.isComplete { verification.sectionCount += UInt64(frame.sectionCount) }
    }
    guard verification.isComplete else { return }
    verification.sectionCount += UInt64(survey.salvaged.count)
    verification.sectionCount -= min(
      verification.sectionCount,
      UInt64(survey.observations.mismatchCount + survey.incomplete.count))
  }
}

extension ArchiveReader {
  /// The CID of a section; nil if it, or the frame it is in, is damaged.
  func intactCID(of ordinal: UInt64) throws -> CID? {
    do {
      let location = try locate(ordinal)
      guard location.asked == location.ordinal,
        try withFile({ (file) in firstDamage(of: location, in: file) }) == nil
      else { return nil }
      return location.prefix.cid
    } catch let error as ArchiveError where !error.isOfSystem {
      return nil
    }
  }
}
