internal import IPLD

/// The tail of the file as the writer sees it: where it ends, and what has been appended since the
/// last footer.
///
/// 1. Everything before ``end`` has been handed to the storage; nothing behind it has been, or it
///    has been cut off.
/// 2. ``frames`` describes every data frame appended since the last footer, in file order, frame 0
///    excepted.
/// 3. ``streamLength`` counts the content of all data frames in the file.
struct FrameLog {
  let storage: any ArchiveStorage
  /// Where the next frame goes.
  private(set) var end: UInt64
  private(set) var frames: [FrameEntry] = []
  private(set) var streamLength: UInt64

  init(storage: any ArchiveStorage, end: UInt64, streamLength: UInt64) {
    self.storage = storage
    self.end = end
    self.streamLength = streamLength
  }

  /// A state to go back to.
  typealias Mark = (end: UInt64, frameCount: Int, streamLength: UInt64)

  /// The state as it is.
  var mark: Mark { (end, frames.count, streamLength) }

  /// Writes frame 0, which is in no frame table.
  mutating func appendHeader(_ stored: Span<UInt8>, contentSize: Int) throws {
    try append(stored)
    streamLength += UInt64(contentSize)
  }

  /// Writes a data frame.
  mutating func append(_ stored: Span<UInt8>, contentSize: Int, firstOrdinal: UInt64) throws {
    let entry = FrameEntry(
      offset: end, checksum: XXH64.hash(stored), firstOrdinal: firstOrdinal,
      storedLength: UInt32(stored.count))
    try append(stored)
    frames.append(entry)
    streamLength += UInt64(contentSize)
  }

  /// Writes bytes that are no data frame.
  mutating func append(_ bytes: Span<UInt8>) throws {
    // Writing behind the end of a file that was cut off would fill the gap with zeros.
    guard try storage.size >= end else { throw ArchiveError(.changedMeanwhile) }
    try storage.write(bytes, at: end)
    end += UInt64(bytes.count)
  }

  /// Writes an index segment, and returns what a footer says of it.
  mutating func append(_ segment: MergedSegment) throws -> Generation.Segment {
    let offset = end
    var log = self
    let checksum = try segment.encode { piece in try log.append(piece) }
    self = log
    return Generation.Segment(
      offset: offset, base: segment.base, sectionCount: UInt32(segment.count),
      frameCount: UInt32(segment.frameCount), checksum: checksum)
  }

  /// Ends a generation: waits until all that is written is on the medium, writes the footer, and
  /// waits again.
  mutating func commit(_ generation: Generation) throws {
    try storage.synchronize()
    let footer = try Footer.encode(generation)
    try append(footer.span)
    try storage.synchronizeFooter()
  }

  /// Makes sure that the file is as long as it was made, and still the one that goes by its name.
  func checkEnd() throws {
    guard try storage.size == end, try storage.isInPlace else {
      throw ArchiveError(.changedMeanwhile)
    }
  }

  /// Cuts the file back to what it was.
  mutating func cutBack(to mark: Mark) throws {
    try storage.truncate(to: mark.end)
    end = mark.end
    frames.removeLast(frames.count - mark.frameCount)
    streamLength = mark.streamLength
  }

  /// The frame in which the section `ordinal` begins; nil if it is in none of these.
  func frame(of ordinal: UInt64) -> FrameEntry? {
    let next = frames.partitioningIndex { $0.firstOrdinal >= ordinal }
    if next < frames.count, frames[next].firstOrdinal == ordinal { return frames[next] }
    return next == 0 ? nil : frames[next - 1]
  }
}
