internal import IPLD

/// Passes over every frame of a file once, examines them on all cores, and tells a survey what it
/// met in file order.
///
/// 1. The survey is called in file order, whatever order the work was done in.
/// 2. In memory is one batch: the reports of some 16 MiB of frames, and one frame's content for
///    each worker. With an intake, two batches, each of some 8 MiB of content in packs.
/// 3. All content together is bounded by ``ArchiveLimits``.
struct FrameScan {
  private static let batchBytes = 16 << 20
  private static let batchUnits = 1024
  private static let fetchedAtOnce = 16 << 20
  /// How much content of packs a batch may have if something of it is to be delivered.
  private static let batchContent = 8 << 20

  /// Which frame of a large section of several a data frame is.
  private typealias Part = (section: LargeSectionScan, number: UInt64, isLast: Bool)

  /// A unit on its way through a batch; written by one worker, or by the scan itself.
  private final class Item: @unchecked Sendable {
    var unit: FrameWalk.Unit
    /// Nil for a frame that holds whole sections.
    let part: Part?
    /// A large section that this unit cuts short.
    let cutShort: LargeSectionScan?
    var report = FrameReport()

    init(_ unit: FrameWalk.Unit, _ part: Part?, cutShort: LargeSectionScan?) {
      (self.unit, self.part, self.cutShort) = (unit, part, cutShort)
    }
  }

  private let examiner: FrameExaminer
  private let workers: Int
  private var walk: FrameWalk
  private var large: LargeSectionScan?
  private let maximumFrames: Int
  /// How much content may still be decompressed.
  private var contentBudget: UInt64
  private let contentLimit: UInt64
  /// How many bytes may still be searched for what is left of frames that do not hold.
  private var remainsBudget: Int
  /// The result of the last batch, delivered while the next is examined.
  private var deliveries: [@Sendable () throws -> Void] = []

  /// A scan of a file from `start` on.
  ///
  /// - Parameters:
  ///   - start: Where it begins: at a frame.
  ///   - count: How many bytes the file has.
  ///   - depth: How closely frames are examined.
  ///   - limits: What the file may decompress to.
  ///   - workers: How many threads.
  ///   - intake: Is given the sections that are found.
  init(
    from start: Int, of count: Int, depth: Survey.Depth = .full, limits: ArchiveLimits,
    workers: Int = Parallel.processorCount, intake: FrameIntake? = nil
  ) {
    self.workers = workers
    maximumFrames = limits.frames(ofFile: count)
    contentLimit = limits.content(ofFile: UInt64(count))
    contentBudget = contentLimit
    remainsBudget = 1 << 32 + 64 * count
    let decoder = FrameDecoder()
    examiner = FrameExaminer(decoder: decoder, depth: depth, intake: intake)
    walk = FrameWalk(from: start, of: count, decoder: decoder)
  }

  /// Every frame table of the file, if something was met that does not hold.
  var tables: FrameTables? { walk.tables }

  /// Runs the scan.
  ///
  /// - Throws: ``ArchiveError`` if the file holds more than it may; what a delivery throws.
  mutating func run(
    _ mapped: MappedFile, into survey: inout Survey, progress: (UInt64, UInt64) -> Void
  ) throws {
    // Places all over the file are read where something does not hold.
    walk.willSearchAll = mapped.willReadAll
    walk.release = mapped.releasePagesIfLarge
    walk.willRead = { mapped.willRead([$0]) }
    var isAtEnd = false
    while !isAtEnd {
      isAtEnd = try mapped.withBytes(reading: [window(of: mapped.count)]) { (bytes) throws in
        try !nextBatch(mapped, bytes, &survey)
      }
      mapped.releasePagesIfLarge()
      progress(UInt64(walk.place), UInt64(mapped.count))
    }
    for delivery in deliveries { try delivery() }
    if let large { survey.noteCutShort(large.cid) }
  }

  /// What is fetched for the next batch of a remote file: whole parts of
  /// ``fetchedAtOnce`` bytes.
  private func window(of count: Int) -> Range<Int> {
    let end = walk.place + Self.batchBytes + 2 * DataFrame.longest
    let parts = (end + Self.fetchedAtOnce - 1) / Self.fetchedAtOnce
    return walk.place..<max(walk.place, min(count, parts * Self.fetchedAtOnce))
  }

  /// Examines the next frames; returns false if there are none.
  private mutating func nextBatch(
    _ mapped: MappedFile, _ bytes: Span<UInt8>, _ survey: inout Survey
  ) throws -> Bool {
    let batch = try collect(in: bytes)
    guard !batch.isEmpty else { return false }
    try examine(batch, mapped)
    for item in batch {
      let isResumed = resume(item, of: mapped, in: bytes)
      tell(item, &survey)
      if case .landmark(let landmark) = item.unit, landmark.isRead {
        mapped.willReadOften([landmark.range])
      }
      guard survey.frames.count + survey.landmarks.count <= maximumFrames else {
        throw ArchiveError(.tooManyFrames(limit: maximumFrames))
      }
      guard isResumed else { continue }
      if let part = item.part, !part.isLast { survey.noteCutShort(part.section.cid) }
      large = nil
      break
    }
    return true
  }

  /// Looks for what is left of a frame that does not hold, and for what follows it.
  ///
  /// - Returns: Whether something else follows than seemed to: where the frame ends is only what it
  ///   says itself, so that may be nothing.
  private mutating func resume(_ item: Item, of mapped: MappedFile, in file: Span<UInt8>) -> Bool {
    switch item.unit {
    case .data(let frame, let isHeader):
      guard item.report.failure != nil else { return false }
      let isResumed = walk.resume(after: frame, in: file)
      if item.part == nil, !isHeader {
        // What a frame that holds has between it and the next is not its own.
        let isOpen = isResumed && !examiner.decoder.holds(frame, in: file)
        let end = isOpen ? walk.place : frame.end
        salvage(frame.offset..<end, of: mapped, in: file, &item.report)
      }
      return isResumed
    case .landmark(.gap(let range, let error)):
      // A frame may have been there whose header is damaged. What was made a void counts no more.
      guard !SkippableFrame.wasVoid(range, in: file) else { return false }
      var report = FrameReport(failure: error)
      salvage(range, of: mapped, in: file, &report)
      guard !report.salvaged.isEmpty || walk.isKnownFrame(range, in: file) else { return false }
      item.report = report
      item.unit = .data(DataFrame(remainsIn: range, contentSize: 0), isHeader: false)
      return false
    case .landmark: return false
    }
  }

  private mutating func salvage(
    _ range: Range<Int>, of mapped: MappedFile, in file: Span<UInt8>, _ report: inout FrameReport
  ) {
    remainsBudget -= FrameRemains.cost(of: range.count)
    guard remainsBudget > 0 else { return }
    mapped.withUnproven(reading: [range], file) { bytes, isProven in
      examiner.salvage(range, in: bytes, isProven: isProven, &report)
    }
  }

  private mutating func collect(in file: Span<UInt8>) throws(ArchiveError) -> [Item] {
    var batch: [Item] = []
    let start = walk.place
    var contentInPacks = 0
    while batch.count < Self.batchUnits, walk.place - start < Self.batchBytes,
      contentInPacks < Self.batchContent, let unit = walk.next(in: file)
    {
      if case .data(let frame, isHeader: false) = unit {
        let size = UInt64(frame.contentSize)
        if examiner.intake != nil, !frame.isRaw || frame.contentSize <= ArchiveLimits.packContent {
          contentInPacks += frame.contentSize
        }
        guard examiner.depth == .quick || size <= contentBudget else {
          throw ArchiveError(.tooMuchContent(limit: contentLimit), at: frame.offset)
        }
        contentBudget -= min(contentBudget, size)
      }
      batch.append(item(unit, in: file))
    }
    return batch
  }

  /// Determines the section of a unit, as far as that must be known before it is examined.
  private mutating func item(_ unit: FrameWalk.Unit, in file: Span<UInt8>) -> Item {
    guard examiner.depth == .full else { return Item(unit, nil, cutShort: nil) }
    let before = large
    large = nil
    // A void is where something was, and a large section may continue after nothing else.
    guard case .data(let frame, isHeader: false) = unit else {
      return Item(unit, nil, cutShort: before)
    }
    if let before, frame.contentSize == before.prefix.contentSize(ofFrame: before.framesMet) {
      return Item(unit, part(of: before), cutShort: nil)
    }
    return Item(unit, beginning(frame, in: file), cutShort: before)
  }

  private mutating func beginning(_ frame: DataFrame, in file: Span<UInt8>) -> Part? {
    // Only a frame that is full of one section can have others after it. If there is none, the
    // examination will say what is wrong.
    guard frame.contentSize > ArchiveLimits.bodyPerFrame,
      let prefix = (try? examiner.decoder.beginning(of: frame, in: file))?.prefix,
      prefix.isLarge, prefix.frameCount > 1, frame.contentSize == prefix.contentSize(ofFrame: 0)
    else { return nil }
    return part(of: LargeSectionScan(prefix))
  }

  /// The next frame of a large section, after which that continues or has ended.
  private mutating func part(of section: LargeSectionScan) -> Part {
    let number = section.framesMet
    section.framesMet += 1
    large = section.isComplete ? nil : section
    return (section, number, section.isComplete)
  }

  /// Does the work of a batch: the bodies of large sections, each in order, and all frames in any
  /// order; meanwhile the result of the batch before is delivered.
  ///
  /// - Throws: what a delivery throws.
  private mutating func examine(_ batch: [Item], _ mapped: MappedFile) throws {
    var bodies: [(LargeSectionScan, [(DataFrame, UInt64)])] = []
    for item in batch {
      guard case .data(let frame, _) = item.unit, let part = item.part else { continue }
      if bodies.last?.0 !== part.section { bodies.append((part.section, [])) }
      bodies[bodies.count - 1].1.append((frame, part.number))
    }
    // The bodies first: they are what takes longest.
    let (work, examiner, deliveries) = (bodies, examiner, deliveries)
    var delivered = Result<Void, any Error>.success(())
    Parallel.perform(work.count + batch.count, workers: workers) {
      delivered = Result { for delivery in deliveries { try delivery() } }
    } _: { index in
      mapped.withBytes(reading: []) { file in
        guard index >= work.count else {
          let (large, frames) = work[index]
          for (frame, number) in frames {
            large.update(with: frame, number: number, decoder: examiner.decoder, in: file)
          }
          return
        }
        let item = batch[index - work.count]
        switch item.unit {
        case .data(let frame, isHeader: true):
          item.report.failure = examiner.examineHeader(frame, in: file)
        case .data(let frame, _):
          item.report = examiner.examine(frame, isPart: item.part != nil, in: file)
        case .landmark: break
        }
      }
    }
    self.deliveries = []
    try delivered.get()
  }

  private mutating func tell(_ item: Item, _ survey: inout Survey) {
    if let large = item.cutShort { survey.noteCutShort(large.cid) }
    switch item.unit {
    case .landmark(let landmark): survey.note(landmark)
    case .data(let frame, isHeader: true): survey.noteHeader(frame, item.report.failure)
    case .data(let frame, _):
      if let part = item.part { complete(item, frame, part) }
      if let delivery = item.report.delivery { deliveries.append(delivery) }
      survey.note(frame, item.report)
    }
  }

  private func complete(_ item: Item, _ frame: DataFrame, _ part: Part) {
    let (large, number, isLast) = part
    if item.report.failure == nil, large.broken.contains(number) {
      item.report.failure = ArchiveError(
        .damagedFrame("it cannot be decompressed"), at: frame.offset)
    }
    if item.report.failure != nil { large.broken.insert(number) }
    if number == 0 {
      if item.report.failure == nil {
        item.report.keys = [large.prefix.cid.sectionKey]
        item.report.delivery = examiner.delivery(ofLarge: large.prefix)
      }
    } else {
      item.report.isContinuation = true
    }
    if isLast { item.report.ended = large.finish() }
  }
}
