package import IPLD

/// One account of a file: every frame, every intact section, every footer and index segment, and
/// what lies between them.
///
/// Whatever asks what a file holds asks this. Verifying compares it with what the footer says,
/// repairing acts on it, a writer adopts the end of a file by it, and a reader whose index is
/// damaged reads by it.
///
/// 1. ``frames`` and ``landmarks`` together are the whole file, in file order, each byte once.
/// 2. A section is intact if its frame holds and it hashes to its CID; ``keys`` are those of all
///    sections in frames that hold.
/// 3. Numbers that the file gives are believed only where they agree with what is there; ordinals
///    that nothing tells are given anew, after all others.
package struct Survey: Sendable {
  /// How much is examined.
  package enum Depth: Sendable {
    /// Everything.
    case full
    /// The stored bytes against their checksums: nothing is decompressed, and no section hashed.
    case quick
  }

  /// A data frame.
  package struct Frame: Sendable {
    /// Where it begins.
    package let offset: UInt64
    /// The XXH64 of its stored bytes.
    package let checksum: UInt64
    /// The ordinal of the first section that has bytes in it; `UInt64.max` while it is not known.
    package internal(set) var firstOrdinal: UInt64 = .max
    /// The number, in ``Survey/keys``, of the first section that begins in it.
    package let firstKey: Int
    /// How many sections begin in it; of a damaged one, how many it seems to have had, 0 if that
    /// cannot be told.
    package internal(set) var sectionCount: UInt32
    /// How many bytes it takes in the file; of a damaged one, up to where the next thing begins.
    package internal(set) var storedLength: UInt32
    /// How many bytes it decompresses to; 0 of a damaged one whose header does not tell.
    package let contentSize: UInt32
    /// Whether it holds.
    package internal(set) var isIntact: Bool
    /// Whether it continues a large section that began before.
    package internal(set) var isContinuation: Bool
    /// Whether what tells its ordinal says that it was written elsewhere.
    var isMoved = false

    /// Whether it holds, and with it whole sections, or the beginning of a large one.
    package var holdsSections: Bool { isIntact && !isContinuation }
    /// Whether it does not hold, and may have had sections.
    var isDamaged: Bool { !isIntact && !isContinuation }
    /// Where it ends.
    package var end: UInt64 { offset + UInt64(storedLength) }
  }

  /// A footer that holds.
  package struct SeenFooter: Sendable {
    /// The frame it is.
    package let frame: SkippableFrame
    /// Where it was written, what its generation is, and what else it says.
    let place: UInt64
    package let number: UInt64
    /// Where the footer before it was written; 0 if there was none.
    let previous: UInt64
    package let sectionCount: UInt64
    package let head: CID?
    /// How many bytes there were from the last index segment that it names to itself.
    package let segmentLength: UInt64
    /// Whether a repair has made it, or one before it.
    let isRepaired: Bool

    /// Whether it stands where it was written.
    package var isInPlace: Bool { place == UInt64(frame.offset) }

    /// Whether it was written before another of its archive: a repair that finds no footer that
    /// holds begins to count from the start.
    func isOlder(than other: SeenFooter) -> Bool {
      (isRepaired ? 1 : 0, number, frame.offset)
        < (other.isRepaired ? 1 : 0, other.number, other.frame.offset)
    }
  }

  /// What lies between data frames.
  package enum Landmark: Sendable {
    case segment(IndexSegment)
    case footer(SeenFooter)
    /// A frame that holds and says what cannot be, or is of a kind that is not known here.
    case other(SkippableFrame, ArchiveError?)
    /// Bytes that no longer count.
    case void(Range<Int>)
    /// Bytes that are not a frame, and why.
    case gap(Range<Int>, ArchiveError)

    /// Where it lies.
    package var range: Range<Int> {
      switch self {
      case .segment(let segment): segment.frame.offset..<segment.frame.end
      case .footer(let footer): footer.frame.offset..<footer.frame.end
      case .other(let frame, _): frame.offset..<frame.end
      case .void(let range), .gap(let range, _): range
      }
    }

    /// Whether it is read again when all that there is is known: an index segment, or a footer.
    var isRead: Bool {
      switch self {
      case .segment, .footer: true
      case .other, .void, .gap: false
      }
    }

    /// What is wrong with it, unless the file was repaired.
    var flaw: ArchiveError? {
      switch self {
      case .segment: nil
      case .footer(let footer):
        footer.isInPlace ? nil : ArchiveError(.movedFooter, at: range.lowerBound)
      case .void: ArchiveError(.foreignBytes(UInt64(range.count)), at: range.lowerBound)
      case .other(_, let error): error
      case .gap(_, let error): error
      }
    }
  }

  /// A section of a damaged frame that hashes to its CID anyway.
  ///
  /// The number of its frame, its own among the sections of the frame, as far as that can be told,
  /// and its key.
  package typealias Salvaged = (frame: Int, index: Int, key: UInt64)

  /// A section that has a frame for itself and the shape of a manifest: the number of its frame,
  /// and what it says.
  package typealias Manifest = (frame: Int, shape: ManifestShape)

  /// Where the survey begins: at 0, or at the end of what is committed.
  package let start: Int
  /// How many bytes the file has.
  package let limit: Int
  /// The ordinal with which the survey begins.
  package let firstOrdinal: UInt64
  /// Frame 0, and why it does not hold; nil if there is none, or the survey begins after it.
  package internal(set) var header: (frame: DataFrame, failure: ArchiveError?)?
  /// The data frames after frame 0, in file order.
  package internal(set) var frames: [Frame] = []
  /// What lies between them, in file order, and how many frames lie before each.
  package internal(set) var landmarks: [(frameCount: Int, landmark: Landmark)] = []
  /// The key of each section that begins in a frame that holds, in file order.
  package internal(set) var keys = KeyList()
  /// What is left of damaged frames.
  package internal(set) var salvaged: [Salvaged] = []
  /// Up to where such a frame reaches by its own block headers, without which it cannot be read.
  var salvagedEnd = 0
  /// What may be manifests, in file order, those in frames that do not hold included.
  package internal(set) var allManifests: [Manifest] = []
  /// One more than the highest ordinal.
  package internal(set) var sectionCount: UInt64 = 0
  /// Every ordinal below this one follows from what is there; others were guessed or given anew.
  package internal(set) var certainEnd = UInt64.max
  /// Whether every ordinal follows from what is there.
  package var isCertain: Bool { certainEnd == .max }
  /// The first frames of sections that are not all there, or do not hash to their CIDs.
  package internal(set) var incomplete: Set<Int> = []
  /// The ordinals of sections that have several frames, and hash to their CIDs though not every
  /// frame holds.
  var recovered: Set<UInt64> = []
  /// Frames that do not hold, or are not in their one form: where, and why.
  package internal(set) var malformations: [ArchiveError] = []
  /// Sections that do not hash to their CIDs, or are not all there: where they end.
  package internal(set) var damaged: [(cid: CID, offset: UInt64)] = []
  /// How many damaged sections were met.
  package internal(set) var damagedCount = 0
  /// How many sections of frames that hold do not hash to their CIDs.
  package internal(set) var mismatchCount = 0
  /// Sections that nothing can verify.
  package internal(set) var unverifiable: [(cid: CID, offset: UInt64)] = []
  /// How many sections nothing can verify.
  package internal(set) var unverifiableCount: UInt64 = 0
  /// Every frame table of the file, if something did not hold.
  var tables: FrameTables?

  /// How many findings, and how many CIDs of each list, are kept; more are counted only.
  package static let listLimit = 10_000

  /// Surveys a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - generation: What is committed, to survey only what comes after it; nil for the whole file.
  ///   - depth: How closely frames are examined.
  ///   - limits: What the file may decompress to.
  ///   - workers: How many threads.
  ///   - intake: Is given the sections that are found.
  ///   - progress: Called now and then with the bytes that are done and those there are.
  /// - Throws: ``ArchiveError`` if the file holds more than it may.
  init(
    _ file: MappedFile, after generation: Generation? = nil,
    depth: Depth = .full, limits: ArchiveLimits = ArchiveLimits(),
    workers: Int = Parallel.processorCount, intake: FrameIntake? = nil,
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws {
    start = Int(generation?.committedLength ?? 0)
    limit = file.count
    firstOrdinal = generation?.sectionCount ?? 0
    var scan = FrameScan(
      from: start, of: limit, depth: depth, limits: limits, workers: workers, intake: intake)
    try scan.run(file, into: &self, progress: progress)
    endDamaged(at: limit)
    tables = scan.tables
    guard depth == .full else { return }
    number(in: file, limits)
    try file.checkFetched()
  }

  /// Where the index segments and footers lie.
  var readAgain: [Range<Int>] {
    landmarks.lazy.map(\.landmark).filter(\.isRead).map(\.range)
  }

  /// The keys of the sections that begin in a frame that holds.
  func keys(of frame: Frame) -> some Sequence<UInt64> {
    (frame.firstKey..<frame.firstKey + Int(frame.sectionCount)).lazy.map { [keys] in keys[$0] }
  }

  /// What may be manifests, in frames that hold.
  var manifests: [Manifest] { allManifests.filter { frames[$0.frame].holdsSections } }

  /// Whether every byte is part of a frame that holds.
  package var isTiled: Bool {
    frames.allSatisfy(\.isIntact) && gaps.isEmpty && header?.failure == nil
  }

  /// Whether it is certain that no section is damaged or lost.
  package var isWhole: Bool {
    isCertain && frames.allSatisfy(\.isIntact) && incomplete.isEmpty && damagedCount == 0
      && lostOrdinals.isEmpty && header?.failure == nil
  }

  /// Whether there is anything in the file that an archive has.
  var foundAnything: Bool { foundAnything(in: start..<limit) }

  /// Whether there is anything in a part of the file that an archive has.
  func foundAnything(in part: Range<Int>) -> Bool {
    part.contains(0) && header?.failure == nil && header != nil || hasContent(in: part)
  }

  /// Whether any section after the header holds, be it in a damaged frame.
  ///
  /// Sections alone are no archive: a CAR has them, too.
  var hasContent: Bool {
    frames.contains(where: \.isIntact)
      || salvaged.contains { frames[$0.frame].contentSize > 0 }
  }

  private func hasContent(in part: Range<Int>) -> Bool {
    frames.contains { $0.isIntact && part.contains(Int($0.offset)) }
      || salvaged.contains {
        part.contains(Int(frames[$0.frame].offset)) && frames[$0.frame].contentSize > 0
      }
      || landmarks.contains {
        guard part.contains($0.landmark.range.lowerBound) else { return false }
        return switch $0.landmark {
        case .segment, .footer: true
        case .other(let frame, _): frame.kind != SkippableFrame.note
        case .void, .gap: false
        }
      }
  }

  /// The footers of later generations than the last in place that hold and do not stand where they
  /// were written.
  ///
  /// One of an earlier generation, or one that names a manifest that is known, is of a copy of an
  /// older part of the file, left by the file system. If the first of them followed another footer
  /// than the last in place, they are of another copy of the archive, to which something else was
  /// appended: what they name does not replace what is committed here.
  ///
  /// - Parameters:
  ///   - last: The last generation in place; nil if there is none.
  ///   - known: The manifests to which its newest leads.
  func movedFooters(after last: Generation?, besides known: () throws -> Set<CID>) rethrows
    -> [SeenFooter]
  {
    let number = last?.number ?? 0
    let moved = footers.filter { !$0.isInPlace && $0.number > number }
    if moved.isEmpty { return [] }
    if let last, last.number > 0, let next = moved.first(where: { $0.number == number + 1 }),
      next.previous != last.footerOffset
    {
      return []
    }
    let known = try known()
    return moved.filter { !($0.head.map(known.contains) ?? false) }
  }

  /// The footers that hold, in file order.
  var footers: [SeenFooter] {
    landmarks.compactMap { if case .footer(let footer) = $0.landmark { footer } else { nil } }
  }

  /// What there is in a file without a footer, as if it were committed.
  var uncommitted: Generation {
    var end = UInt64(header.map { $0.failure == nil ? $0.frame.end : 0 } ?? 0)
    if let last = frames.last(where: { $0.isIntact }) { end = max(end, last.end) }
    for (_, landmark) in landmarks {
      if case .gap = landmark { continue }
      end = max(end, UInt64(landmark.range.upperBound))
    }
    return Generation(
      number: 0, footerOffset: 0, previousFooterOffset: nil, committedLength: end,
      sectionCount: sectionCount, streamLength: contentLength, head: nil, segments: [])
  }

  /// The bytes that are not a frame, in file order.
  var gaps: [Range<Int>] {
    landmarks.compactMap { if case .gap(let range, _) = $0.landmark { range } else { nil } }
  }

  /// The bytes that no longer count, in file order.
  var voids: [Range<Int>] {
    landmarks.compactMap { if case .void(let range) = $0.landmark { range } else { nil } }
  }

  /// How many bytes the content of all frames has.
  package var contentLength: UInt64 {
    frames.reduce(UInt64(header?.frame.contentSize ?? 0)) { $0 + UInt64($1.contentSize) }
  }

  /// The ordinals that no intact frame holds, ascending.
  package var lostOrdinals: [Range<UInt64>] {
    var lost: [Range<UInt64>] = []
    var next = firstOrdinal
    for frame in framesByOrdinal where frame.holdsSections {
      if frame.firstOrdinal > next { lost.append(next..<frame.firstOrdinal) }
      next = max(next, frame.firstOrdinal + UInt64(frame.sectionCount))
    }
    if next < sectionCount { lost.append(next..<sectionCount) }
    return lost
  }

  /// The frames whose ordinals are known, in the order of these.
  package var framesByOrdinal: [Frame] {
    let known = frames.filter { $0.firstOrdinal != .max }
    let isSorted = zip(known, known.dropFirst()).allSatisfy { $0.firstOrdinal <= $1.firstOrdinal }
    return isSorted
      ? known
      : known.sorted { ($0.firstOrdinal, $0.offset) < ($1.firstOrdinal, $1.offset) }
  }
}

extension Survey {
  mutating func noteHeader(_ frame: DataFrame, _ failure: ArchiveError?) {
    header = (frame, failure)
    if let failure { malformations.append(failure) }
  }

  /// Records that a large section ended before all its frames had arrived: its CID, if that can be
  /// relied on.
  mutating func noteCutShort(_ cid: CID?) {
    let first = noteIncomplete()
    if let cid { noteDamaged(cid, first.map { frames[$0].offset } ?? UInt64(start)) }
  }

  /// Records that the large section of the last frames is not whole; returns which frame it
  /// begins in.
  @discardableResult
  private mutating func noteIncomplete() -> Int? {
    let first = frames.lastIndex { !$0.isContinuation }
    guard let first, frames[first].holdsSections else { return first }
    incomplete.insert(first)
    return first
  }

  mutating func note(_ landmark: Landmark) {
    endDamaged(at: landmark.range.lowerBound)
    landmarks.append((frames.count, landmark))
  }

  /// Ends a damaged frame where the next thing begins: it may claim more than it has, or less.
  private mutating func endDamaged(at place: Int) {
    guard let last = frames.last, last.end != UInt64(place), last.offset < UInt64(place),
      landmarks.last?.frameCount ?? 0 < frames.count
    else { return }
    frames[frames.count - 1].storedLength = UInt32(clamping: UInt64(place) - last.offset)
  }

  mutating func note(_ frame: DataFrame, _ report: FrameReport) {
    let place = UInt64(frame.offset)
    endDamaged(at: frame.offset)
    malformations += [report.failure, report.flaw].compactMap(\.self)
    for cid in report.damaged { noteDamaged(cid, place) }
    if report.failure == nil { mismatchCount += report.damaged.count }
    for cid in report.unverifiable { noteUnverifiable(cid, place) }
    if let ended = report.ended, let cid = ended.cid {
      switch ended.verification {
      case .matches: break
      case .mismatch:
        noteIncomplete()
        noteDamaged(cid, place)
      case .cannotVerify: noteUnverifiable(cid, place)
      }
    }
    if let shape = report.manifest { allManifests.append((frames.count, shape)) }
    salvaged += report.salvaged.map { (frames.count, $0.index, $0.key) }
    if !report.salvaged.isEmpty { salvagedEnd = max(salvagedEnd, frame.end) }
    let frame = Frame(
      offset: place, checksum: report.checksum, firstKey: keys.count,
      sectionCount: report.isContinuation
        ? 0 : UInt32(report.failure == nil ? report.keys.count : report.likelyCount),
      storedLength: UInt32(clamping: frame.length), contentSize: UInt32(frame.contentSize),
      isIntact: report.failure == nil, isContinuation: report.isContinuation)
    frames.append(frame)
    if frame.holdsSections { for key in report.keys { keys.append(key) } }
  }

  private mutating func noteDamaged(_ cid: CID, _ place: UInt64) {
    damagedCount += 1
    if damaged.count < Self.listLimit { damaged.append((cid, place)) }
  }

  private mutating func noteUnverifiable(_ cid: CID, _ place: UInt64) {
    unverifiableCount += 1
    if unverifiable.count < Self.listLimit { unverifiable.append((cid, place)) }
  }
}

extension Survey.Landmark {
  /// What a skippable frame is whose checksum holds.
  init(_ frame: SkippableFrame, in file: Span<UInt8>) {
    do throws(ArchiveError) {
      switch frame.kind {
      case SkippableFrame.indexSegment: self = .segment(try IndexSegment(file, at: frame.offset))
      case SkippableFrame.footer:
        guard Footer.segmentCount(length: frame.length) != nil else {
          throw ArchiveError(.malformedFooter("its length is impossible"), at: frame.offset)
        }
        let claim = Footer.headClaim(in: file, at: frame.offset)
        self = .footer(
          Survey.SeenFooter(
            frame: frame, place: file.u64(frame.end - Footer.trailerLength),
            number: file.u64(frame.offset + 48), previous: file.u64(frame.offset + 56),
            sectionCount: file.u64(frame.offset + 64),
            head: claim.flatMap { $0.frameOffset > 0 ? $0.cid : nil },
            segmentLength: Footer.lengthFromLastSegment(in: file, frame),
            isRepaired: FeatureFlags(required: file.u64(frame.offset + 32)).isRepaired))
      case SkippableFrame.parityPage:
        _ = try ParityGroup.page(frame, in: file)
        self = .other(frame, nil)
      default: self = .other(frame, nil)
      }
    } catch {
      self = .other(frame, error)
    }
  }
}
