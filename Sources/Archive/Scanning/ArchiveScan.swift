internal import IPLD

/// Passes over every frame of a file once, examines them on all cores, and tells what it met in the order of the file.
///
/// 1. Events come in file order, whatever order the work was done in.
/// 2. What is in memory is one batch: the reports of some 32 MiB of frames, and a frame's content for each worker.
struct ArchiveScan {
  /// What the scan met.
  enum Event {
    /// Frame 0, and what is wrong with it.
    case header(DataFrame, ArchiveError?)
    /// A data frame, and what the tables say of it.
    case frame(DataFrame, FrameEntry?, FrameReport)
    /// Where the tables say that a frame is, none can be read.
    case lost(FrameEntry, ArchiveError)
    /// A skippable frame whose checksum holds.
    case skippable(SkippableFrame)
    /// Bytes that are no frame.
    case gap(Range<Int>, ArchiveError)
    /// The tables name a frame that cannot be there.
    case misplaced(FrameEntry)
    /// A large section ended before all its frames had come: its CID, if that can be relied on.
    case cutShort(CID?)
  }

  private static let batchBytes = 32 << 20
  private static let batchUnits = 1024

  /// Which sections a data frame holds bytes of.
  private enum Role {
    case whole
    case part(LargeScan, number: UInt64, isLast: Bool)
    /// A part of a section whose first frame is lost.
    case orphan
  }

  /// A unit on its way through a batch; written by one worker, or by the scan itself.
  private final class Item: @unchecked Sendable {
    let unit: FrameWalk.Unit
    let role: Role
    /// A large section that this unit cuts short.
    let cutShort: LargeScan?
    var report = FrameReport()
    var headerFailure: ArchiveError?

    init(_ unit: FrameWalk.Unit, _ role: Role, cutShort: LargeScan?) {
      self.unit = unit
      self.role = role
      self.cutShort = cutShort
    }
  }

  private let limit: Int
  private let examiner: FrameExaminer
  private let workers: Int
  private var walk: FrameWalk
  private var large: LargeScan?
  private var lastOrdinal: UInt64?

  /// A scan of the first `limit` bytes.
  ///
  /// - Parameters:
  ///   - limit: Where it ends.
  ///   - known: The segments whose frame tables are to be believed; nil to find frames by walking.
  ///   - anchors: Without them, the segments that may say something of a frame all the same.
  ///   - depth: How closely frames are looked at.
  ///   - workers: How many threads.
  init(
    limit: Int, known: [IndexSegment]?, anchors: Anchors? = nil,
    depth: FrameExaminer.Depth = .full, workers: Int = SystemCalls.processorCount
  ) {
    self.limit = limit
    self.workers = workers
    let decoder = FrameDecoder()
    examiner = FrameExaminer(decoder: decoder, depth: known == nil ? .full : depth)
    walk = FrameWalk(limit: limit, known: known, anchors: anchors, decoder: decoder)
  }

  /// Runs the scan.
  mutating func run(
    _ mapped: MappedFile, progress: (UInt64, UInt64) -> Void = { _, _ in },
    _ consume: (Event) throws -> Void
  ) throws {
    while true {
      let batch = mapped.withBytes { bytes in
        collect(in: bytes.extracting(first: limit))
      }
      guard !batch.isEmpty else { break }
      examine(batch, mapped)
      for item in batch {
        try deliver(item, consume)
        guard case .data(let frame, nil) = item.unit, item.report.failure != nil else { continue }
        // Where this frame ends is only what it says itself, so what seemed to come after it may be nothing.
        let isMoved = mapped.withBytes { bytes in
          walk.resume(after: frame, in: bytes.extracting(first: limit))
        }
        guard isMoved else { continue }
        if case .part(let large, _, isLast: false) = item.role {
          try consume(.cutShort(large.cid))
        }
        large = nil
        break
      }
      progress(UInt64(walk.place), UInt64(limit))
    }
    if let large { try consume(.cutShort(large.cid)) }
  }

  private mutating func collect(in file: Span<UInt8>) -> [Item] {
    var batch: [Item] = []
    let start = walk.place
    while batch.count < Self.batchUnits, walk.place - start < Self.batchBytes,
      let unit = walk.next(in: file)
    {
      batch.append(item(unit, in: file))
    }
    return batch
  }

  /// Finds out which section a unit belongs to, as far as that must be known before it is examined.
  private mutating func item(_ unit: FrameWalk.Unit, in file: Span<UInt8>) -> Item {
    guard examiner.depth == .full else { return Item(unit, .whole, cutShort: nil) }
    guard case .data(let frame, let entry) = unit else {
      if case .misplaced = unit { return Item(unit, .whole, cutShort: nil) }
      if case .lost(let entry, _) = unit, let large, entry.firstOrdinal == large.firstOrdinal {
        large.isBroken = true
        large.framesMet += 1
        lastOrdinal = entry.firstOrdinal
        guard large.isComplete else { return Item(unit, .whole, cutShort: nil) }
      }
      if case .lost(let entry, _) = unit { lastOrdinal = entry.firstOrdinal }
      defer { large = nil }
      return Item(unit, .whole, cutShort: large)
    }
    defer { lastOrdinal = entry?.firstOrdinal ?? lastOrdinal }
    if let large {
      if frame.contentSize == large.prefix.contentSize(ofFrame: large.framesMet),
        entry == nil || entry?.firstOrdinal == large.firstOrdinal
      {
        return part(unit, of: large)
      }
      self.large = nil
      return Item(unit, role(frame, entry, in: file), cutShort: large)
    }
    if let entry, entry.firstOrdinal == lastOrdinal { return Item(unit, .orphan, cutShort: nil) }
    return Item(unit, role(frame, entry, in: file), cutShort: nil)
  }

  private mutating func role(_ frame: DataFrame, _ entry: FrameEntry?, in file: Span<UInt8>)
    -> Role
  {
    // Only a frame that is full of one section can have others after it.
    guard frame.contentSize > ArchiveLimits.bodyPerFrame else { return .whole }
    do throws(ArchiveError) {
      let content =
        frame.isRaw
        ? RawFrame.content(of: frame, in: file, limit: ArchiveLimits.sectionPrefix)
        : try examiner.decoder.content(of: frame, in: file)
      let prefix = try SectionPrefix(content.span, at: 0, place: UInt64(frame.offset))
      guard prefix.isLarge, prefix.frameCount > 1,
        frame.contentSize == prefix.contentSize(ofFrame: 0)
      else { return .whole }
      let begun = LargeScan(prefix, firstOrdinal: entry?.firstOrdinal)
      begun.framesMet = 1
      large = begun
      return .part(begun, number: 0, isLast: false)
    } catch {
      // The examination will say what is wrong with it.
      return .whole
    }
  }

  private mutating func part(_ unit: FrameWalk.Unit, of large: LargeScan) -> Item {
    let number = large.framesMet
    large.framesMet += 1
    if large.isComplete { self.large = nil }
    return Item(
      unit, .part(large, number: number, isLast: large.isComplete), cutShort: nil)
  }

  /// Does the work of a batch: the bodies of large sections, each in order, and all frames in any order.
  private func examine(_ batch: [Item], _ mapped: MappedFile) {
    var bodies: [(LargeScan, [(DataFrame, UInt64)])] = []
    for item in batch {
      guard case .data(let frame, _) = item.unit, case .part(let large, let number, _) = item.role
      else { continue }
      if bodies.last?.0 !== large { bodies.append((large, [])) }
      bodies[bodies.count - 1].1.append((frame, number))
    }
    // The bodies first: they are what takes longest.
    let (work, examiner, limit) = (bodies, examiner, limit)
    Parallel.perform(work.count + batch.count, workers: workers) { index in
      mapped.withBytes { bytes in
        let file = bytes.extracting(first: limit)
        guard index >= work.count else {
          let (large, frames) = work[index]
          for (frame, number) in frames {
            large.update(with: frame, number: number, decoder: examiner.decoder, in: file)
          }
          return
        }
        let item = batch[index - work.count]
        switch item.unit {
        case .header(let frame):
          item.headerFailure = examiner.examineHeader(frame, in: file)
        case .data(let frame, let entry):
          switch item.role {
          case .whole: item.report = examiner.examine(frame, entry, in: file)
          case .part, .orphan: item.report = examiner.examinePart(frame, entry, in: file)
          }
        default: break
        }
      }
    }
  }

  private func deliver(_ item: Item, _ consume: (Event) throws -> Void) throws {
    if let large = item.cutShort { try consume(.cutShort(large.cid)) }
    switch item.unit {
    case .header(let frame): try consume(.header(frame, item.headerFailure))
    case .lost(let entry, let error): try consume(.lost(entry, error))
    case .skippable(let frame): try consume(.skippable(frame))
    case .gap(let range, let error): try consume(.gap(range, error))
    case .misplaced(let entry): try consume(.misplaced(entry))
    case .data(let frame, let entry):
      switch item.role {
      case .whole: break
      case .orphan: item.report.isContinuation = true
      case .part(let large, let number, let isLast):
        if item.report.failure != nil {
          large.isBroken = true
          if number == 0 { large.isPrefixBroken = true }
        }
        if number == 0 {
          item.report.isContinued = !isLast
          if item.report.failure == nil {
            item.report.keys = [SectionKey(large.prefix.cid).prefix]
          }
        } else {
          item.report.isContinuation = true
        }
        if isLast { item.report.ended = large.finish() }
      }
      try consume(.frame(frame, entry, item.report))
    }
  }
}
