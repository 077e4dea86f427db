/// The frame tables of every index segment of a file whose checksum holds: live or dead, in place
/// or moved.
///
/// They are found by the magic, so damage before them does not hide them. They say where a damaged
/// frame ends, and which ordinals a frame has that stands after damage (FORMAT 7). A segment
/// directly follows the last frame it names, so how far both lie apart is by how many bytes it was
/// moved: bytes that were inserted or removed before it.
package struct FrameTables: Sendable {
  /// The segments, and by how many bytes each lies after where its table says that it begins.
  private var tables: [(segment: IndexSegment, shift: Int)] = []

  /// How many lookups are left: a file made of nothing but segments would take forever.
  private var lookupBudget: Int
  /// Table and entry numbers by the checksum of the frame's stored bytes, made when first asked
  /// for.
  private var byChecksum: [(checksum: UInt64, table: UInt32, entry: UInt32)]?

  /// How many bytes a small frame is believed to have grown by.
  private static let maximumInsertion = 4096
  /// How many entries are sorted by their checksums: 64 MiB.
  private static let maximumSorted = 1 << 22

  /// The tables of a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - release: Releases the pages that have been read.
  package init(in file: Span<UInt8>, release: () -> Void) {
    lookupBudget = 1 << 24 + file.count
    var hashBudget = 4 * file.count
    var place = 0
    while hashBudget > 0,
      let magic = ArchiveMagic.next(in: file, from: place, release: release)
    {
      place = magic + ArchiveMagic.length
      // An error here says only that no segment begins at this place.
      guard let segment = try? IndexSegment(file, at: magic - 8) else { continue }
      hashBudget -= segment.frame.length
      guard hashBudget > 0, segment.frame.holds(in: file) else { continue }
      place = segment.frame.end
      let last = segment.frameEntry(segment.frameCount - 1, in: file)
      let shift = segment.frame.offset - Int(clamping: last.end)
      tables.append((segment, shift))
    }
  }

  /// Where a frame that begins at `start` and is damaged may end, by any table.
  ///
  /// - Parameter isBoundary: Whether something begins or the file ends at a place.
  /// - Returns: The end; and where it ends if it is as long as the table says, which is another
  ///   place if as much was inserted or removed as the table itself was moved by.
  mutating func end(
    ofFrameAt start: Int, in file: Span<UInt8>, _ isBoundary: (Int) -> Bool
  ) -> (place: Int, asStored: Int)? {
    for table in tables.reversed() {
      // Where it was written comes first, and the length that the table gives.
      for moved in table.shift == 0 ? [0] : [0, table.shift] {
        lookupBudget -= 1
        guard lookupBudget > 0 else { return nil }
        let (place, overflow) = start.subtractingReportingOverflow(moved)
        guard !overflow, place >= 0,
          let entry = entry(at: UInt64(place), in: table.segment, file)
        else { continue }
        // More likely, only the segment was moved; an insertion of that size into the frame is
        // unlikely.
        let isLikely =
          abs(table.shift - moved) <= max(Int(entry.storedLength), Self.maximumInsertion)
        for shift in isLikely && moved != table.shift ? [moved, table.shift] : [moved] {
          let end = Int(clamping: entry.end).addingReportingOverflow(shift)
          if !end.overflow, end.partialValue > start, isBoundary(end.partialValue) {
            return (end.partialValue, start + Int(entry.storedLength))
          }
        }
      }
    }
    return nil
  }

  /// Where the frame ends that begins at `start`, if by a table it and others fill the place up to
  /// `end`.
  func firstEnd(from start: Int, to end: Int, in file: Span<UInt8>) -> Int? {
    guard let first = entry(ofFrameAt: start, in: file) else { return nil }
    var last = first
    while last.end < UInt64(end), let next = entry(ofFrameAt: Int(last.end), in: file) {
      last = next
    }
    return last.end == UInt64(end) ? Int(first.end) : nil
  }

  /// What the newest table says that has a frame at a place.
  func entry(ofFrameAt offset: Int, in file: Span<UInt8>) -> FrameEntry? {
    for table in tables.reversed() {
      if let entry = entry(at: UInt64(offset), in: table.segment, file) { return entry }
    }
    return nil
  }

  private func entry(at offset: UInt64, in segment: IndexSegment, _ file: Span<UInt8>)
    -> FrameEntry?
  {
    // Honest tables are in file order, unless frames were moved; what is missed costs only
    // precision.
    let place = (0..<segment.frameCount).partitioningIndex {
      segment.frameEntry($0, in: file).offset >= offset
    }
    guard place < segment.frameCount else { return nil }
    let entry = segment.frameEntry(place, in: file)
    return entry.offset == offset && entry.storedLength > 0 ? entry : nil
  }

  /// Visits the sections of several frames: the ordinal of each, and where its frames lie, as far as
  /// they lie where they were written.
  func forEachLargeSection(in file: Span<UInt8>, _ body: (UInt64, [Range<Int>]) -> Void) {
    for table in tables where table.shift == 0 {
      var parts: [Range<Int>] = []
      var ordinal: UInt64?
      for entry in table.segment.frames(in: file) {
        if entry.firstOrdinal != ordinal {
          if let ordinal, parts.count > 1 { body(ordinal, parts) }
          parts = []
        }
        ordinal = entry.firstOrdinal
        parts.append(entry.range)
      }
      if let ordinal, parts.count > 1 { body(ordinal, parts) }
    }
  }

  /// What a table says of a frame with these stored bytes: one that has it at this place, or else
  /// the newest that knows it.
  ///
  /// - Returns: The ordinal of the first section that has bytes in it, whether it continues the
  ///   section of the frame before it, and whether it was written at another place.
  mutating func frame(
    at offset: UInt64, checksum: UInt64, storedLength: Int, in file: Span<UInt8>
  ) -> (firstOrdinal: UInt64, isContinuation: Bool, isMoved: Bool)? {
    let sorted = byChecksum ?? sortByChecksum(in: file)
    byChecksum = sorted
    var place = sorted.partitioningIndex { $0.checksum > checksum }
    var moved: (firstOrdinal: UInt64, isContinuation: Bool, isMoved: Bool)?
    // The newest stands last.
    while place > 0, sorted[place - 1].checksum == checksum {
      place -= 1
      let segment = tables[Int(sorted[place].table)].segment
      let number = Int(sorted[place].entry)
      let entry = segment.frameEntry(number, in: file)
      guard entry.storedLength == UInt32(clamping: storedLength) else { continue }
      let isContinuation =
        number > 0 && segment.frameEntry(number - 1, in: file).firstOrdinal == entry.firstOrdinal
      if entry.offset == offset { return (entry.firstOrdinal, isContinuation, false) }
      moved = moved ?? (entry.firstOrdinal, isContinuation, true)
    }
    return moved
  }

  private func sortByChecksum(in file: Span<UInt8>) -> [(
    checksum: UInt64, table: UInt32, entry: UInt32
  )] {
    var sorted: [(checksum: UInt64, table: UInt32, entry: UInt32)] = []
    for (number, table) in tables.enumerated().reversed() {
      guard sorted.count + table.segment.frameCount <= Self.maximumSorted else { break }
      for (index, entry) in table.segment.frames(in: file).enumerated() {
        sorted.append((entry.checksum, UInt32(clamping: number), UInt32(clamping: index)))
      }
    }
    sorted.sort { ($0.checksum, $0.table, $0.entry) < ($1.checksum, $1.table, $1.entry) }
    return sorted
  }

  /// What segments keep of the keys of the ordinals in `lost`, as far as they know them.
  ///
  /// - Parameters:
  ///   - lost: Ordinals, ascending.
  ///   - note: Called with an ordinal and what is kept of its key.
  func keptKeys(of lost: [Range<UInt64>], in file: Span<UInt8>, _ note: (UInt64, UInt64) -> Void) {
    guard let first = lost.first, let last = lost.last else { return }
    var budget = lookupBudget
    for table in tables {
      let segment = table.segment
      guard segment.base < last.upperBound, first.lowerBound < segment.end else { continue }
      budget -= segment.count
      guard budget > 0 else { return }
      segment.forEachKept(in: file) { ordinal, key in
        if lost.has(ordinal) { note(ordinal, key) }
      }
    }
  }
}
