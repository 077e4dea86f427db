internal import IPLD

/// Reads the index from the data frames, which are the truth (FORMAT 7).
///
/// 1. Ordinals count from 0 as long as everything holds. Behind a place that does not they are provisional, until a segment
///    that holds vouches for a frame and says its ordinal.
/// 2. As long as they are provisional, a section counts only if it hashes to its CID: what was found may be a piece of a
///    blob.
package struct IndexRebuilder {
  /// What was found.
  package struct Result: Sendable {
    package let index: RebuiltIndex
    /// One more than the highest ordinal that is certain.
    package let sectionCount: UInt64
    /// The length of the content of all frames that hold.
    package let streamLength: UInt64
    /// Where the last frame that holds ends.
    package let end: UInt64
    /// Whether nothing was damaged.
    package let isWhole: Bool
  }

  private var entries: [RebuiltIndex.Entry] = []
  private var frames: [FrameEntry] = []
  private var next: UInt64 = 0
  private var isCertain = true
  /// Where provisional ordinals go on.
  private var provisional = RebuiltIndex.lostBase
  /// The large section that is passing by, if it does not count unless it is whole.
  private var tentative: (entry: Int, frame: Int)?

  private var sectionCount: UInt64 = 0
  private var streamLength: UInt64 = 0
  private var end: UInt64 = 0
  private var isWhole = true
  private var foundAnything = false

  /// Walks the first `limit` bytes of a file.
  ///
  /// - Throws: ``ArchiveError`` if there is nothing in it that an archive has.
  package static func rebuild(_ file: MappedFile, limit: Int) throws -> Result {
    var rebuilder = IndexRebuilder()
    let anchors = file.withBytes { bytes in Anchors(in: bytes, limit: limit) }
    var scan = ArchiveScan(limit: limit, known: nil, anchors: anchors)
    try scan.run(file) { event in rebuilder.take(event) }
    guard rebuilder.foundAnything else { throw ArchiveError(.notAnArchive) }
    return Result(
      index: RebuiltIndex(entries: rebuilder.entries, frames: rebuilder.frames),
      sectionCount: rebuilder.sectionCount, streamLength: rebuilder.streamLength,
      end: rebuilder.end, isWhole: rebuilder.isWhole)
  }

  private mutating func take(_ event: ArchiveScan.Event) {
    switch event {
    case .header(let frame, let failure):
      guard failure == nil else { return lose() }
      foundAnything = true
      streamLength += UInt64(frame.contentSize)
      end = UInt64(frame.end)
    case .frame(let frame, let entry, let report):
      if report.failure == nil {
        take(frame, entry, report)
      } else {
        takeDamaged(frame, entry, report)
      }
    case .skippable(let frame):
      foundAnything = true
      end = UInt64(frame.end)
    case .gap, .lost, .misplaced: lose()
    case .cutShort: dropTentative()
    }
  }

  private mutating func take(_ frame: DataFrame, _ entry: FrameEntry?, _ report: FrameReport) {
    if let entry, !isCertain, !report.isContinuation {
      isCertain = true
      next = entry.firstOrdinal
    }
    let isVouchedFor = isCertain
    if report.isContinuation {
      guard isVouchedFor || tentative != nil else { return }
      append(frame, report, firstOrdinal: max(next, 1) - 1)
    } else {
      guard isVouchedFor || report.unproved.count < report.keys.count else { return lose() }
      append(frame, report, firstOrdinal: next)
      if !isVouchedFor, report.isContinued {
        tentative = (entries.count, frames.count - 1)
      }
      var unproved = report.unproved[...]
      for (index, key) in report.keys.enumerated() {
        let isUnproved = unproved.first == index
        if isUnproved { unproved.removeFirst() }
        if isVouchedFor || !isUnproved { entries.append(.init(key: key, ordinal: next)) }
        next += 1
      }
      if isCertain { sectionCount = max(sectionCount, next) }
    }
    foundAnything = true
    streamLength += UInt64(frame.contentSize)
    end = UInt64(frame.end)
    if let ended = report.ended {
      if ended.verification != .matches { dropTentative() }
      tentative = nil
    }
  }

  /// Keeps what of a frame still hashes to its CID, under a number as long as nothing is missing before it.
  private mutating func takeDamaged(
    _ frame: DataFrame, _ entry: FrameEntry?, _ report: FrameReport
  ) {
    dropTentative()
    defer { lose() }
    guard !report.isContinuation, !report.salvaged.isEmpty else { return }
    foundAnything = true
    // Behind the first section that is lost, a length that is wrong may have led past another.
    var leading = 0
    while isCertain, leading < report.salvaged.count, report.salvaged[leading].index == leading {
      leading += 1
    }
    if leading > 0 { keep(report.salvaged[..<leading], of: frame, report, firstOrdinal: next) }
    sectionCount = max(sectionCount, isCertain ? next + UInt64(leading) : 0)
    if leading < report.salvaged.count {
      // The same frame once more, under numbers that are not told.
      keep(
        report.salvaged[leading...], of: frame, report,
        firstOrdinal: isCertain ? provisional : next)
    }
  }

  private mutating func keep(
    _ salvaged: ArraySlice<FrameReport.Found>, of frame: DataFrame, _ report: FrameReport,
    firstOrdinal: UInt64
  ) {
    append(frame, report, firstOrdinal: firstOrdinal)
    for found in salvaged {
      entries.append(.init(key: found.key, ordinal: firstOrdinal + UInt64(found.index)))
    }
  }

  private mutating func append(_ frame: DataFrame, _ report: FrameReport, firstOrdinal: UInt64) {
    frames.append(
      FrameEntry(
        offset: UInt64(frame.offset), checksum: report.checksum, firstOrdinal: firstOrdinal,
        storedLength: UInt32(clamping: frame.length)))
  }

  /// From here on, ordinals are provisional.
  private mutating func lose() {
    dropTentative()
    // Far enough that what a frame holds of sections cannot run into the next.
    provisional =
      max(provisional, isCertain ? 0 : next) + UInt64(ArchiveLimits.frameContent)
    next = provisional
    isWhole = false
    isCertain = false
  }

  private mutating func dropTentative() {
    guard let (entry, frame) = tentative else { return }
    tentative = nil
    entries.removeSubrange(entry...)
    frames.removeSubrange(frame...)
  }
}
