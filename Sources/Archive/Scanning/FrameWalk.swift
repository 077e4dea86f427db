internal import IPLD

/// Walks the frames of a file from its beginning, passing over what is damaged (FORMAT 7).
///
/// With the frame tables at hand it knows where frames begin and end, so that damage stays where it is. Without, it goes by
/// what any segment still says of a frame; else each frame ends where its block headers say, and where they mislead, the
/// walk resumes at the next place where a whole frame holds.
///
/// 1. ``place`` only ever grows, and everything before it has been answered for: as a frame, or as a gap.
struct FrameWalk {
  /// What lies at a place of the file.
  enum Unit {
    /// Frame 0, with the CAR header.
    case header(DataFrame)
    /// A data frame, and what the tables say of it.
    case data(DataFrame, FrameEntry?)
    /// Where the tables say that a frame is, none can be read.
    case lost(FrameEntry, ArchiveError)
    /// A skippable frame whose checksum holds.
    case skippable(SkippableFrame)
    /// Bytes that are no frame.
    case gap(Range<Int>, ArchiveError)
    /// The tables name a frame that cannot be there.
    case misplaced(FrameEntry)
  }

  /// Where the walk is.
  private(set) var place = 0
  private let limit: Int
  private var known: KnownFrames?
  private let anchors: Anchors?
  private let decoder: FrameDecoder
  /// How many bytes may still be tried as frames while searching for the next one.
  ///
  /// An honest file needs a few times its size; one made of frame headers would take for ever.
  private var budget: Int

  /// A walk of the first `limit` bytes.
  init(limit: Int, known: [IndexSegment]?, anchors: Anchors?, decoder: FrameDecoder) {
    self.limit = limit
    self.known = known.map { KnownFrames($0) }
    self.anchors = anchors
    self.decoder = decoder
    budget = 1 << 28 + 4 * limit
  }

  /// The next unit, or nil at the end.
  mutating func next(in file: Span<UInt8>) -> Unit? {
    let expected = known?.next(in: file)
    if let expected, expected.offset < UInt64(place) || expected.end > UInt64(limit) {
      known?.advance()
      return .misplaced(expected)
    }
    guard place < limit else { return nil }
    let start = place
    if let expected, expected.offset == UInt64(start) {
      known?.advance()
      place = Int(expected.end)
      return knownFrame(expected, in: file)
    }
    if expected == nil, let entry = anchors?.entry(at: start, limit: limit, in: file) {
      place = Int(entry.end)
      return knownFrame(entry, in: file)
    }
    let stop = expected.map { Int($0.offset) } ?? limit
    do throws(ArchiveError) {
      let unit = try frame(in: file, stop: stop)
      return unit
    } catch {
      place = resumption(after: start, stop: stop, in: file)
      return .gap(start..<place, error)
    }
  }

  private func knownFrame(_ entry: FrameEntry, in file: Span<UInt8>) -> Unit {
    do throws(ArchiveError) {
      let frame = try DataFrame(file, at: Int(entry.offset), limit: Int(entry.end))
      guard UInt64(frame.end) == entry.end else {
        throw ArchiveError(.damagedFrame("it has another length"), offset: entry.offset)
      }
      return .data(frame, entry)
    } catch {
      return .lost(entry, error)
    }
  }

  private mutating func frame(in file: Span<UInt8>, stop: Int) throws(ArchiveError) -> Unit {
    let start = place
    if let first = file.firstWord(at: start), first == SkippableFrame.zstdMagic {
      let frame = try SkippableFrame(file, at: start)
      guard frame.end <= stop, frame.holds(in: file) else {
        throw ArchiveError(
          .damagedFrame("the checksum of a skippable frame does not hold"), offset: UInt64(start))
      }
      place = frame.end
      return .skippable(frame)
    }
    let frame = try DataFrame(file, at: start, limit: stop)
    place = frame.end
    return start == 0 ? .header(frame) : .data(frame, nil)
  }

  /// Goes back, after a frame that no table knows has turned out damaged, to where the next one holds.
  ///
  /// Usually a frame begins where the damaged one seemed to end, and there is no need to; answers whether there was.
  mutating func resume(after frame: DataFrame, in file: Span<UInt8>) -> Bool {
    guard known == nil, frame.end < limit else { return false }
    let first = file.firstWord(at: frame.end)
    guard first != DataFrame.zstdMagic, first != SkippableFrame.zstdMagic else { return false }
    place = resumption(after: frame.offset, stop: limit, in: file)
    return true
  }

  /// Where to go on when nothing begins at `start`: at most `stop`.
  private mutating func resumption(after start: Int, stop: Int, in file: Span<UInt8>) -> Int {
    let part = file.extracting(first: stop)
    var searched = start + 1
    while let magic = ArchiveMagic.next(in: part, from: searched + 8) {
      // With the tables there is nothing else to look for; without, a data frame may come first.
      if known == nil, let frame = nextFrame(from: searched, to: magic - 8, in: part) {
        return frame
      }
      if skippableHolds(at: magic - 8, in: part) { return magic - 8 }
      searched = magic - 7
    }
    guard known == nil else { return stop }
    return nextFrame(from: searched, to: stop, in: part) ?? stop
  }

  /// The first place at or after `start` and before `end` where a data frame holds.
  private mutating func nextFrame(from start: Int, to end: Int, in file: Span<UInt8>) -> Int? {
    var place = start
    while place < min(end, file.count - 4), budget > 0 {
      if file[place] == 0x28, dataFrameHolds(at: place, in: file) { return place }
      place += 1
    }
    return nil
  }

  private func skippableHolds(at place: Int, in file: Span<UInt8>) -> Bool {
    do throws(ArchiveError) {
      return try SkippableFrame(file, at: place).holds(in: file)
    } catch {
      return false
    }
  }

  private mutating func dataFrameHolds(at place: Int, in file: Span<UInt8>) -> Bool {
    guard file.firstWord(at: place) == DataFrame.zstdMagic else { return false }
    do throws(ArchiveError) {
      budget -= 64
      let frame = try DataFrame(file, at: place, limit: limit)
      budget -= frame.length
      if frame.isRaw { return RawFrame.checksumHolds(of: frame, in: file) }
      budget -= frame.contentSize
      _ = try decoder.content(of: frame, in: file)
      return true
    } catch {
      return false
    }
  }
}
