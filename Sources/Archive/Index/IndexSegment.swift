// offset  size   field
//      0    28   skippable frame, kind 1
//     28     1   fan-out bits a
//     29     1   form: 0 wide, 1 packed
//     30     2   zero
//     32     8   u64 base: the first ordinal covered
//     40     4   u32 n: how many ordinals are covered
//     44     4   u32 m: how many frames
//     48   4·2^a fan-out: u32 number i is how many entries have leading key bits ≤ i
//      …   …     packed: for each bucket a one for each of its entries and a zero, in bit blocks
//      …   …     entries, sorted by key. Wide: u32 first 32 bits of the key, u32 ordinal less base.
//                Packed, in bit blocks: the ordinal less base, and the bits of the key behind
//                those that tell the bucket
//      …  24·m   frame table
// last 8     8   XXH64

/// An index segment, read where it lies in the file (FORMAT 4.1).
///
/// Opening one reads its header only. Whatever it answers is confirmed elsewhere, so nothing here
/// has to be believed; but every number is checked against the segment's own bounds before it is
/// used.
package struct IndexSegment: Equatable, Sendable {
  /// More sections than one can cover: the length of its frame would not go into 32 bits.
  package static let maximumCount = 1 << 29 - 1

  /// The skippable frame it is.
  package let frame: SkippableFrame
  /// Where things lie in it.
  let layout: SegmentLayout

  /// How its entries are written.
  package var form: IndexForm { layout.form }
  /// The first ordinal covered.
  package var base: UInt64 { layout.base }
  /// How many ordinals are covered.
  package var count: Int { layout.count }
  /// How many data frames are covered.
  package var frameCount: Int { layout.frameCount }
  /// The first ordinal after those covered.
  package var end: UInt64 { base + UInt64(count) }

  /// Whether an ordinal is covered.
  func covers(_ ordinal: UInt64) -> Bool { base <= ordinal && ordinal < end }

  private var framesOffset: Int { frame.offset + layout.framesOffset }

  /// Reads the header of the segment whose frame begins at `offset`.
  ///
  /// - Throws: ``ArchiveError`` if it is not a segment, or one whose numbers do not fit its length.
  package init(_ file: Span<UInt8>, at offset: Int) throws(ArchiveError) {
    let place = UInt64(clamping: offset)
    frame = try SkippableFrame(file, at: offset)
    guard frame.kind == SkippableFrame.indexSegment,
      frame.length >= SegmentLayout.fanOutOffset + 4 + 8
    else {
      throw ArchiveError(.damagedIndex("no segment begins here"), offset: place)
    }
    let impossible = ArchiveError(.damagedIndex("a segment's header is impossible"), offset: place)
    let fanOutBits = Int(file[offset + 28])
    let base = file.u64(offset + 32)
    let count = Int(file.u32(offset + 40))
    let frameCount = Int(file.u32(offset + 44))
    guard let form = IndexForm(rawValue: file[offset + 29]), file[offset + 30] == 0,
      file[offset + 31] == 0, fanOutBits <= SegmentLayout.maximumFanOutBits, base < 1 << 62,
      count > 0, count <= Self.maximumCount, frameCount > 0
    else { throw impossible }
    layout = SegmentLayout(
      form, base: base, count: count, frameCount: frameCount, fanOutBits: fanOutBits)
    guard layout.fanOutBits == fanOutBits, layout.length == frame.length else { throw impossible }
  }

  /// The segment that a footer names, by what that says; nil if it has to be read to know where
  /// things lie in it, or cannot be.
  init?(_ named: Generation.Segment, _ generation: Generation, fileLength: Int) {
    guard generation.features.indexForm == .packed, let offset = Int(exactly: named.offset),
      named.sectionCount > 0, named.sectionCount <= Self.maximumCount, named.frameCount > 0,
      named.base < 1 << 62
    else { return nil }
    layout = SegmentLayout(
      .packed, base: named.base, count: Int(named.sectionCount), frameCount: Int(named.frameCount))
    guard offset <= fileLength - layout.length else { return nil }
    frame = SkippableFrame(
      kind: SkippableFrame.indexSegment, offset: offset, length: layout.length,
      checksum: named.checksum)
  }

  /// Whether the length of a segment's frame goes into 32 bits, in either form.
  package static func fits(count: Int, frameCount: Int) -> Bool {
    count <= maximumCount
      && SegmentLayout(.wide, base: 0, count: max(1, count), frameCount: frameCount).length - 8
        <= UInt32.max
  }

  /// Segments up to this length are fetched whole when they are searched, where they are not here.
  private static let maximumFetched = 16 << 20

  /// What is read of it to find sections, whichever they are: all of it, or of a long one what
  /// leads to the entries and the frames.
  var searchedRanges: [Range<Int>] {
    guard frame.length > Self.maximumFetched else { return [frame.range] }
    return [
      frame.offset..<frame.offset + layout.marksOffset,
      framesOffset..<framesOffset + frameCount * FrameEntry.length,
    ]
  }

  /// What is read besides to find those with a key.
  func searchedRanges(for key: UInt64, in file: Span<UInt8>) -> [Range<Int>] {
    guard frame.length > Self.maximumFetched, let (marks, entries) = places(of: key, in: file)
    else { return [] }
    return [marks, entries].map { frame.offset + $0.lowerBound..<frame.offset + $0.upperBound }
  }

  /// Entry number `index` of the frame table.
  ///
  /// - Precondition: `index` is below ``frameCount``.
  @inline(__always)
  package func frameEntry(_ index: Int, in file: Span<UInt8>) -> FrameEntry {
    FrameEntry(file, at: framesOffset + index * FrameEntry.length, base: base)
  }

  /// The frame table, in order of ordinals.
  package func frames(in file: Span<UInt8>) -> [FrameEntry] {
    var entries: [FrameEntry] = []
    entries.reserveCapacity(frameCount)
    for index in 0..<frameCount { entries.append(frameEntry(index, in: file)) }
    return entries
  }

  /// The number, in the frame table, of the frame in which the section `ordinal` begins; nil if the
  /// table says that it lies before the first.
  package func frameIndex(of ordinal: UInt64, in file: Span<UInt8>) -> Int? {
    // The first frame whose number is not below: if it is equal, the section begins it; otherwise
    // the one before holds it.
    let next = (0..<frameCount).partitioningIndex {
      frameEntry($0, in: file).firstOrdinal >= ordinal
    }
    if next < frameCount, frameEntry(next, in: file).firstOrdinal == ordinal { return next }
    return next == 0 ? nil : next - 1
  }
}
