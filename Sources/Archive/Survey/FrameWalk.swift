/// Walks the frames of a file from one place to its end, whatever is damaged between them (FORMAT
/// 7).
///
/// A frame is believed first: it ends where its block headers say. Where it does not hold, the walk
/// resumes at the first of these that there is: the frame's end by an index segment; its end by its
/// block headers, if something begins there; the next place where a whole frame holds.
///
/// 1. ``place`` only ever grows, except for ``resume(after:in:)``, and everything before it has
///    been accounted for.
/// 2. What is searched, hashed and decompressed to find the next frame is bounded by a multiple of
///    the file.
struct FrameWalk {
  /// What lies at a place of the file.
  enum Unit {
    /// A data frame, by its form; frame 0 is the one with the CAR header.
    case data(DataFrame, isHeader: Bool)
    case landmark(Survey.Landmark)
  }

  /// Where the walk is.
  private(set) var place: Int
  private let decoder: FrameDecoder
  /// Every frame table of the file; looked for when something does not hold.
  private(set) var tables: FrameTables?
  /// The first magic at or after the place that was last searched from; nil before the first
  /// search.
  private var nextMagic: (from: Int, at: Int?)?
  /// How many bytes may still be tried as frames.
  ///
  /// An honest file needs a few times its size; one made of frame headers would take forever.
  private var budget: Int

  /// Called before something is looked for all over the file.
  var willSearchAll: () -> Void = {}
  /// Releases the pages of the file that have been read.
  var release: () -> Void = {}
  /// Called before a skippable frame is read, with its range according to its own first bytes.
  var willRead: (Range<Int>) -> Void = { _ in }

  /// A walk through a file of this many bytes.
  init(from start: Int, of count: Int, decoder: FrameDecoder) {
    place = start
    self.decoder = decoder
    budget = 1 << 27 + 4 * count
  }

  /// The next unit, or nil at the end.
  mutating func next(in file: Span<UInt8>) -> Unit? {
    guard place < file.count else { return nil }
    let start = place
    do throws(ArchiveError) {
      return try frame(in: file)
    } catch {
      place = resumption(after: start, in: file)
      // Some of its content may be there, or all of it and only the checksum cut off. Otherwise it
      // is a gap, for the reason caught above.
      if let frame = try? DataFrame(file, at: start, limit: place, mayBeTorn: true) {
        return .data(frame, isHeader: false)
      }
      return .landmark(.gap(start..<place, error))
    }
  }

  private mutating func frame(in file: Span<UInt8>) throws(ArchiveError) -> Unit {
    let start = place
    switch file.firstWord(at: start) {
    case SkippableFrame.zstdMagic:
      let length = start <= file.count - 8 ? 8 + Int(file.u32(start + 4)) : 0
      willRead(start..<min(file.count, start + length))
      let frame = try SkippableFrame(file, at: start)
      guard holds(frame, in: file) else {
        throw ArchiveError(
          .damagedFrame("the checksum of a skippable frame does not match"), at: start)
      }
      place = frame.end
      return .landmark(Survey.Landmark(frame, in: file))
    case SkippableFrame.voidMagic:
      let void = try SkippableFrame.void(in: file, at: start)
      place = void.upperBound
      return .landmark(.void(void))
    default:
      let frame = try DataFrame(file, at: start, limit: file.count)
      place = frame.end
      // Where what it holds begins as a section does, frame 0 is gone, and another is in its place.
      let isHeader = start == 0 && (try? decoder.beginning(of: frame, in: file)) == nil
      return .data(frame, isHeader: isHeader)
    }
  }

  /// Resumes after a data frame that has turned out damaged; returns whether what came after it was
  /// wrong.
  mutating func resume(after frame: DataFrame, in file: Span<UInt8>) -> Bool {
    let next = resumption(after: frame.offset, seemingEnd: frame.end, in: file)
    guard next != frame.end else { return false }
    place = next
    return true
  }

  /// Whether an index segment says that a data frame lies here and nothing else.
  func isKnownFrame(_ range: Range<Int>, in file: Span<UInt8>) -> Bool {
    tables?.entry(ofFrameAt: range.lowerBound, in: file)?.range == range
  }

  /// Where to continue when what begins at `start` does not hold.
  private mutating func resumption(
    after start: Int, seemingEnd: Int? = nil, in file: Span<UInt8>
  ) -> Int {
    willSearchAll()
    if tables == nil { tables = FrameTables(in: file, release: release) }
    let byTable = tables?.end(ofFrameAt: start, in: file) { Self.isBoundary($0, in: file) }
    let byItself = seemingEnd.flatMap { Self.isBoundary($0, in: file) ? ($0, $0) : nil }
    if let (end, asStored) = byTable ?? byItself {
      // Where bytes were lost, it may be that a frame in between ends there; where bytes of it were
      // overwritten, the new bytes may be frames.
      return knownFrame(from: start + 1, to: end, anyFrom: asStored, in: file) ?? end
    }
    let next = nextWhole(after: start, in: file)
    // If what was written here ends there, as a table says, the first frame of it ends earlier.
    return tables?.firstEnd(from: start, to: next, in: file) ?? next
  }

  /// The next place where a whole frame holds, or where the file ends.
  private mutating func nextWhole(after start: Int, in file: Span<UInt8>) -> Int {
    var searched = start + 1
    while let magic = magic(from: searched + 8, in: file) {
      if let frame = nextFrame(from: searched, to: magic - 8, in: file) { return frame }
      // An error here says only that no frame begins at this place.
      if let frame = try? SkippableFrame(file, at: magic - 8), holds(frame, in: file) {
        return frame.offset
      }
      searched = magic - 7
    }
    return nextFrame(from: searched, to: file.count, in: file) ?? file.count
  }

  /// Whether the file ends here, or the first bytes are those of a frame.
  private static func isBoundary(_ place: Int, in file: Span<UInt8>) -> Bool {
    guard place < file.count else { return place == file.count }
    // An error here says only that no frame begins at this place.
    return switch file.firstWord(at: place) {
    case SkippableFrame.zstdMagic: (try? SkippableFrame(file, at: place)) != nil
    case SkippableFrame.voidMagic: (try? SkippableFrame.void(in: file, at: place)) != nil
    default:
      (try? DataFrame(file, at: place, limit: file.count, mayBeTorn: true)) != nil
    }
  }

  /// The first magic at or after `start`, looked for once.
  private mutating func magic(from start: Int, in file: Span<UInt8>) -> Int? {
    if let known = nextMagic, known.from <= start, known.at.map({ start <= $0 }) ?? true {
      return known.at
    }
    let found = ArchiveMagic.next(in: file, from: start, release: release)
    nextMagic = (start, found)
    return found
  }

  /// The first place at or after `start` and before `end` where a data frame holds that a table
  /// knows, or that begins at or after `behind`.
  ///
  /// What looks like a frame inside a damaged one may be a part of a blob.
  private mutating func knownFrame(
    from start: Int, to end: Int, anyFrom behind: Int, in file: Span<UInt8>
  ) -> Int? {
    var start = start
    while let place = nextFrame(from: start, to: end, in: file) {
      guard place < behind else { return place }
      start = place + 1
      // It was read a moment ago, so this does not fail.
      guard let frame = try? DataFrame(file, at: place, limit: file.count) else { continue }
      let checksum = XXH64.hash(file.extracting(frame.range))
      let known = tables?.frame(
        at: UInt64(place), checksum: checksum, storedLength: frame.length, in: file)
      if known != nil { return place }
    }
    return nil
  }

  /// The first place at or after `start` and before `end` where a data frame holds.
  private mutating func nextFrame(from start: Int, to end: Int, in file: Span<UInt8>) -> Int? {
    var place = start
    while budget > 0, let found = file.place(of: DataFrame.zstdMagic, from: place, before: end) {
      if dataFrameHolds(at: found, in: file) { return found }
      place = found + 1
    }
    return nil
  }

  private mutating func holds(_ frame: SkippableFrame, in file: Span<UInt8>) -> Bool {
    budget -= frame.length
    return budget > 0 && frame.holds(in: file)
  }

  private mutating func dataFrameHolds(at place: Int, in file: Span<UInt8>) -> Bool {
    budget -= 64
    // An error here says only that no frame begins at this place.
    guard let frame = try? DataFrame(file, at: place, limit: file.count) else { return false }
    budget -= frame.length + (frame.isRaw ? 0 : frame.contentSize)
    return decoder.holds(frame, in: file)
  }
}
