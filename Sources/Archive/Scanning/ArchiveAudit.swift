internal import IPLD

/// Compares what a scan meets with what the index and the footers say, in the order of the file.
///
/// 1. ``sectionCount`` and ``streamLength`` are what the frames so far amount to, as long as ``isUnbroken``.
/// 2. The keys of one live segment's sections are in memory, eight bytes each, until the segment has been compared.
struct ArchiveAudit {
  private(set) var verification: ArchiveVerification
  private let generation: Generation
  /// The live segments, if they can be believed.
  private let known: [IndexSegment]?

  /// How many sections the frames so far hold.
  private var sectionCount: UInt64 = 0
  private var streamLength: UInt64 = 0
  /// Whether every data frame so far holds, so that counts can be compared.
  private var isUnbroken = true
  /// Whether all bytes so far are frames, so that footers can be counted.
  private var isTiled = true

  /// The last footer that was met, and how many there were.
  private var lastFooter: Generation?
  private var footerCount: UInt64 = 0
  private var heads: [(head: Generation.Head, footerOffset: UInt64)] = []

  // The live segment that the frames at hand belong to.
  private var segment = 0
  private var keys = KeyList()
  private var frames: [FrameEntry] = []
  private var isSegmentUnbroken = true
  /// Keys that several sections have, of which some may have the same CID.
  private var repeatedKeys = Set<UInt64>()

  /// The ordinals that are lost since the last frame that holds: the first of them, and those that are not after all.
  private var lost: (first: UInt64, salvaged: [Int])?

  init(generation: Generation, known: [IndexSegment]?, isComplete: Bool) {
    self.generation = generation
    self.known = known
    verification = ArchiveVerification(generation: generation, isComplete: isComplete)
  }

  mutating func note(_ rebuild: Recovery.Rebuild) {
    switch rebuild {
    case .noFooter: verification.note(.damaged, .noFooter, at: nil)
    case .damagedIndex(let offset):
      verification.note(.damaged, .damagedIndex("it was read from the frames instead"), at: offset)
    }
  }

  /// Takes the next thing the scan met.
  mutating func take(_ event: ArchiveScan.Event, in file: Span<UInt8>) {
    switch event {
    case .header(let frame, let failure):
      if let failure {
        verification.note(.damaged, failure)
        isUnbroken = false
      }
      streamLength += UInt64(frame.contentSize)
    case .frame(let frame, let entry, let report):
      take(frame, entry, report, in: file)
    case .lost(let entry, let error):
      verification.note(.damaged, error)
      lose(entry, [], in: file)
    case .misplaced(let entry):
      verification.note(
        .damaged, .damagedIndex("a frame table names a frame that cannot be there"),
        at: entry.offset)
      lose(entry, [], in: file)
    case .gap(let range, let error):
      verification.note(.damaged, error)
      isTiled = false
      // With the tables, a gap is at frame 0 or between footers: no other data frame lies in one.
      if range.lowerBound == 0 || known == nil { isUnbroken = false }
    case .skippable(let frame):
      take(frame, in: file)
    case .cutShort(let cid):
      if let cid { verification.noteDamaged(cid, at: nil) }
      isUnbroken = false
    }
  }

  private mutating func take(
    _ frame: DataFrame, _ entry: FrameEntry?, _ report: FrameReport, in file: Span<UInt8>
  ) {
    let place = UInt64(frame.offset)
    for flaw in report.flaws { verification.note(.damaged, flaw) }
    if let failure = report.failure { verification.note(.damaged, failure) }
    for cid in report.damaged { verification.noteDamaged(cid, at: place) }
    for cid in report.unverifiable { verification.noteUnverifiable(cid, at: place) }
    take(report.ended, at: place)
    if known != nil, entry == nil {
      verification.note(
        .damaged, .damagedIndex("no frame table knows a frame that is there"), at: place)
      isUnbroken = false
    }
    guard report.failure == nil else {
      verification.sectionCount += UInt64(report.salvaged.count)
      if let entry {
        lose(entry, report.salvaged.map(\.index), in: file)
      } else {
        isUnbroken = false
      }
      return
    }
    if let entry { enter(entry, in: file) }
    verification.frameCount += 1
    streamLength += UInt64(frame.contentSize)
    guard verification.isComplete else { return }
    let base = known.flatMap { segment < $0.count ? $0[segment].base : nil } ?? 0
    let next = base + UInt64(keys.count)
    frames.append(
      FrameEntry(
        offset: place, checksum: report.checksum,
        firstOrdinal: report.isContinuation ? max(next, base + 1) - 1 : next,
        storedLength: UInt32(clamping: frame.length)))
    if known != nil { for key in report.keys { keys.append(key) } }
    sectionCount += UInt64(report.keys.count)
    verification.sectionCount += UInt64(report.keys.count)
    verification.sectionCount -= min(verification.sectionCount, UInt64(report.damaged.count))
  }

  private mutating func take(_ ended: FrameReport.Ended?, at place: UInt64) {
    guard let ended else { return }
    switch ended.verification {
    case .matches: break
    case .cannotVerify:
      if let cid = ended.cid { verification.noteUnverifiable(cid, at: place) }
    case .mismatch:
      verification.sectionCount -= min(verification.sectionCount, 1)
      if let cid = ended.cid {
        verification.noteDamaged(cid, at: place)
      } else {
        verification.note(.damaged, .damagedFrame("the beginning of a section is lost"), at: place)
      }
    }
  }

  // MARK: The index

  /// Goes on to the segment that the next frame belongs to, and to the ordinals that it holds.
  private mutating func enter(_ entry: FrameEntry, in file: Span<UInt8>) {
    closeLost(before: entry.firstOrdinal)
    guard let known else { return }
    while segment < known.count, entry.firstOrdinal >= known[segment].end {
      leaveSegment(in: file)
    }
  }

  /// Takes note of a frame whose sections are lost, but for some.
  private mutating func lose(_ entry: FrameEntry, _ salvaged: [Int], in file: Span<UInt8>) {
    enter(entry, in: file)
    isUnbroken = false
    isSegmentUnbroken = false
    if lost == nil { lost = (entry.firstOrdinal, salvaged) }
  }

  private mutating func closeLost(before ordinal: UInt64) {
    // A frame that goes on with a section whose beginning is lost saves nothing of it.
    guard let (first, salvaged) = lost, ordinal > first else { return }
    lost = nil
    var start = first
    for index in salvaged {
      let saved = first + UInt64(index)
      guard saved >= start, saved < ordinal else { continue }
      verification.noteDamaged(start..<saved)
      start = saved + 1
    }
    verification.noteDamaged(start..<max(start, ordinal))
  }

  /// Makes the segment again from the frames, which must give the same bytes.
  private mutating func leaveSegment(in file: Span<UInt8>) {
    guard let known, segment < known.count else { return }
    let live = known[segment]
    closeLost(before: live.end)
    if verification.isComplete, isSegmentUnbroken {
      let builder = IndexSegmentBuilder(base: live.base, keys: keys, frames: frames[...])
      if !builder.isEncoded(in: file, at: live.frame.offset, length: live.frame.length) {
        verification.note(
          .damaged, .damagedIndex("a segment is not what the frames make it"),
          at: UInt64(live.frame.offset))
      }
      repeatedKeys.formUnion(builder.repeatedKeys(keys))
      for older in known[..<segment] {
        for index in 0..<keys.count where older.mayContain(keys[index], in: file) {
          repeatedKeys.insert(keys[index])
        }
      }
    }
    segment += 1
    keys = KeyList()
    frames = []
    isSegmentUnbroken = true
  }

  // MARK: Footers

  private mutating func take(_ frame: SkippableFrame, in file: Span<UInt8>) {
    do throws(ArchiveError) {
      switch frame.kind {
      case .indexSegment: _ = try IndexSegment(file, at: frame.offset)
      case .footer: try takeFooter(frame, in: file)
      default: break
      }
    } catch {
      verification.note(.damaged, error)
    }
  }

  private mutating func takeFooter(_ frame: SkippableFrame, in file: Span<UInt8>)
    throws(ArchiveError)
  {
    let place = UInt64(frame.offset)
    func malformed(_ what: String) -> ArchiveError {
      ArchiveError(.malformedFooter(what), offset: place)
    }
    footerCount += 1
    guard Footer.frame(file, at: frame.offset) != nil else {
      throw malformed("it is not where it says")
    }
    let footer = try Footer.read(file, frame)
    defer { lastFooter = footer }
    if isTiled {
      guard footer.number == footerCount,
        footer.previousFooterOffset == lastFooter?.footerOffset
      else { throw malformed("it does not follow the one before it") }
    }
    if isUnbroken, verification.isComplete {
      guard footer.sectionCount == sectionCount, footer.streamLength == streamLength else {
        throw malformed(
          "it counts \(footer.sectionCount) sections in \(footer.streamLength) bytes, and there are "
            + "\(sectionCount) in \(streamLength)")
      }
    }
    // The segments it names may be dead by now, and still have to be there.
    _ = try ArchiveIndex(footer, in: file)
    if let head = footer.head, head != heads.last?.head { heads.append((head, place)) }
  }

  // MARK: The end

  /// Compares what can be compared at the end only.
  mutating func finish(_ reader: ArchiveReader, limit: Int) throws {
    reader.file.withBytes { bytes in
      let file = bytes.extracting(first: limit)
      while segment < known?.count ?? 0 { leaveSegment(in: file) }
      closeLost(before: generation.sectionCount)
      noteTail(in: bytes, from: limit)
    }
    if isTiled, generation.number > 0, footerCount != generation.number {
      verification.note(
        .damaged, .malformedFooter("\(footerCount) footers make \(generation.number) generations"),
        at: generation.footerOffset)
    }
    verification.byteCount = UInt64(limit)
    guard known != nil else { return }
    for (head, footerOffset) in heads { try check(head, footerOffset, reader) }
    try checkRepeated(reader)
  }

  private mutating func noteTail(in bytes: Span<UInt8>, from limit: Int) {
    guard generation.number > 0, bytes.count > limit else { return }
    for footer in Footer.remains(in: bytes, from: limit, after: generation) {
      verification.note(.damaged, .damagedFooter, at: UInt64(footer.offset))
    }
    verification.note(
      .interruptedTail, .interruptedTail(bytes: UInt64(bytes.count - limit)), at: UInt64(limit))
  }

  private mutating func check(
    _ head: Generation.Head, _ footerOffset: UInt64, _ reader: ArchiveReader
  ) throws {
    do {
      let location = try reader.locate(head.ordinal)
      let frame = try reader.withFile { (file) throws in
        location.index.entry(at: location.position, in: file)
      }
      let isAlone =
        switch location.body {
        case .pack(let frame, _): frame.count == 1
        case .frames: true
        }
      guard location.prefix.cid == head.cid, frame.offset == head.frameOffset, isAlone else {
        throw ArchiveError(
          .malformedFooter("its manifest is not where it says"), offset: footerOffset)
      }
    } catch let error as ArchiveError {
      verification.note(.damaged, error)
    }
  }

  /// Looks at sections with equal keys: the same bytes may be there under several CIDs, but no CID twice.
  private mutating func checkRepeated(_ reader: ArchiveReader) throws {
    for key in repeatedKeys.sorted() {
      do {
        let ordinals = try reader.withFile { (file) throws in
          try reader.index.candidates(SectionKey(prefix: key), in: file)
        }
        var seen = Set<CID>()
        for ordinal in ordinals {
          let cid = try reader.locate(ordinal).prefix.cid
          if !seen.insert(cid).inserted {
            verification.note(.damaged, .repeatedSection(cid), at: nil)
          }
        }
      } catch let error as ArchiveError {
        verification.note(.damaged, error)
      }
    }
  }
}
