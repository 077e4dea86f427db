internal import IPLD

/// Puts an archive's index and footers back as they were, and drops what an interrupted write has left.
///
/// Index segments and footers say nothing that the data frames do not, so that what is damaged of them can be made again, byte for
/// byte, where it lay. Data frames cannot: from the first that is lost on, nothing is changed here, for how many sections came before
/// is not known there; a new archive can be made of what is left (see `SnapshotCopier` in the library `Backup`).
///
/// Invariant: bytes of a frame that holds are never written to.
public struct ArchiveRepair {
  /// What was done.
  public struct Report: Equatable, Sendable {
    /// Where index segments were made again.
    public internal(set) var segments: [UInt64] = []
    /// Where footers were.
    public internal(set) var footers: [UInt64] = []
    /// How many bytes that an interrupted write had left were cut off.
    public internal(set) var bytesCutOff: UInt64 = 0
    /// The first place that could not be repaired; nil if there is none.
    public internal(set) var firstLost: ArchiveError?

    /// Whether the file is as it was.
    public var isUnchanged: Bool { segments.isEmpty && footers.isEmpty && bytesCutOff == 0 }
  }

  let storage: any ArchiveStorage
  var report = Report()

  // What the frames so far amount to.
  var keys = KeyList()
  var frames: [FrameEntry] = []
  var streamLength: UInt64 = 0
  /// The generation that the last footer, whether it held or was made again, ended.
  var previous: Generation?
  /// The index segment behind the last footer, if there is one.
  var segment: IndexSegment?
  /// How many frames there were at the last footer.
  var committedFrames = 0
  /// Bytes that are no frame, behind what has been counted, until it is known what follows them.
  var gap: Range<Int>?
  var hasLost = false
  /// Whether a data frame behind the last footer does not hold, so that what an interrupted write has left ends there.
  var isTorn = false
  /// What the last footer says that holds.
  private let committed: Generation?

  private init(_ storage: any ArchiveStorage, _ committed: Generation?) {
    self.storage = storage
    self.committed = committed
  }

  /// Repairs what can be repaired in place.
  ///
  /// - Parameters:
  ///   - storage: The archive; it is locked.
  ///   - progress: Called now and then with the bytes that are done and those there are.
  /// - Throws: ``ArchiveError`` if it is no archive or needs a later version; what the storage throws. Whatever was written by then is
  ///   right, and repairing again goes on.
  /// - Returns: What was done.
  public static func run(
    _ storage: any ArchiveStorage, progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws -> Report {
    try storage.lock()
    let file = try storage.map()
    // A file of a later version is not touched.
    var repair = ArchiveRepair(storage, try ArchiveReader.lastGeneration(of: file))
    let anchors = file.withBytes { bytes in Anchors(in: bytes, limit: bytes.count) }
    var scan = ArchiveScan(limit: file.count, known: nil, anchors: anchors)
    try scan.run(file, progress: progress) { event in
      try file.withBytes { (bytes) throws in try repair.take(event, in: bytes) }
    }
    try file.withBytes { (bytes) throws in try repair.finish(in: bytes) }
    return repair.report
  }

  private mutating func take(_ event: ArchiveScan.Event, in file: Span<UInt8>) throws {
    guard !hasLost, !isTorn else { return }
    switch event {
    case .header(let frame, let failure):
      if let failure { return lose(failure) }
      streamLength = UInt64(frame.contentSize)
    case .frame(let frame, _, let report):
      if let failure = report.failure { return lose(failure, in: file) }
      if let cid = report.damaged.first {
        return lose(ArchiveError(.damagedSection(cid), offset: UInt64(frame.offset)), in: file)
      }
      guard try closeGap(before: nil, in: file) else { return }
      segment = nil
      streamLength += UInt64(frame.contentSize)
      let next = UInt64(keys.count)
      frames.append(
        FrameEntry(
          offset: UInt64(frame.offset), checksum: report.checksum,
          firstOrdinal: report.isContinuation ? max(next, 1) - 1 : next,
          storedLength: UInt32(clamping: frame.length)))
      for key in report.keys { keys.append(key) }
    case .skippable(let frame):
      try take(frame, in: file)
    case .gap(let range, _):
      gap = (gap?.lowerBound ?? range.lowerBound)..<range.upperBound
    case .lost(_, let error): lose(error)
    case .misplaced(let entry):
      lose(ArchiveError(.damagedIndex("it names an impossible frame"), offset: entry.offset))
    case .cutShort: break
    }
  }

  private mutating func take(_ frame: SkippableFrame, in file: Span<UInt8>) throws {
    switch frame.kind {
    case .indexSegment:
      guard try closeGap(before: nil, in: file) else { return }
      segment = try IndexSegment(file, at: frame.offset)
    case .footer:
      guard Footer.frame(file, at: frame.offset) != nil else {
        return lose(
          ArchiveError(
            .malformedFooter("it is not where it says"), offset: UInt64(frame.offset)))
      }
      let footer = try Footer.read(file, frame)
      guard try closeGap(before: footer, in: file) else { return }
      guard footer.sectionCount == UInt64(keys.count), footer.streamLength == streamLength else {
        return lose(
          ArchiveError(
            .malformedFooter("it counts other sections than there are"),
            offset: UInt64(frame.offset)))
      }
      end(footer)
    default:
      // Of a later version, and no business of this one.
      _ = try closeGap(before: nil, in: file)
    }
  }

  mutating func end(_ generation: Generation) {
    previous = generation
    segment = nil
    committedFrames = frames.count
  }

  /// Gives up at a data frame, unless it was never committed.
  private mutating func lose(_ error: ArchiveError, in file: Span<UInt8>) {
    guard let committed, previous?.number == committed.number, let offset = error.offset,
      !Footer.remains(in: file, from: Int(committed.committedLength), after: committed)
        .contains(where: \.isNext), offset >= committed.committedLength
    else { return lose(error) }
    isTorn = true
  }

  mutating func lose(_ error: ArchiveError) {
    hasLost = true
    report.firstLost = error
  }
}
