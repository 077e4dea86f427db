internal import IPLD

// offset  size   field
//      0    28   skippable frame, kind 1
//     28     1   fan-out bits b, 0 … 24
//     29     3   zero
//     32     8   u64 base: the first ordinal covered
//     40     4   u32 n: how many ordinals are covered
//     44     4   u32 m: how many frames
//     48   4·2^b fan-out: u32 number i is how many entries have leading key bits ≤ i
//      …   8·n   entries: u32 first 32 bits of the key, u32 ordinal less base; sorted
//      …  24·m   frame table
// last 8     8   XXH64

/// An index segment, read where it lies in the file (FORMAT 4.1).
///
/// Opening one reads its header only. Whatever it answers is confirmed elsewhere, so nothing here has to be believed; but
/// every number is checked against the segment's own bounds before it is used.
package struct IndexSegment: Equatable, Sendable {
  /// More sections than one can cover: the length of its frame would not go into 32 bits.
  package static let maximumCount = 1 << 29 - 1
  /// The most fan-out bits.
  package static let maximumFanOutBits = 24
  /// Where the fan-out begins, from the frame's start.
  package static let fanOutOffset = 48
  /// How many bytes an entry takes.
  package static let entryLength = 8

  /// The skippable frame it is.
  package let frame: SkippableFrame
  /// How many leading bits the fan-out tells apart.
  package let fanOutBits: Int
  /// The first ordinal covered.
  package let base: UInt64
  /// How many ordinals are covered.
  package let count: Int
  /// How many data frames are covered.
  package let frameCount: Int

  /// The first ordinal behind those covered.
  package var end: UInt64 { base + UInt64(count) }

  private var entriesOffset: Int { frame.offset + Self.fanOutOffset + 4 << fanOutBits }
  private var framesOffset: Int { entriesOffset + Self.entryLength * count }

  /// Reads the header of the segment whose frame begins at `offset`.
  ///
  /// - Throws: ``ArchiveError`` if it is no segment, or one whose numbers do not fit its length.
  package init(_ file: Span<UInt8>, at offset: Int) throws(ArchiveError) {
    let place = UInt64(clamping: offset)
    frame = try SkippableFrame(file, at: offset)
    guard frame.kind == .indexSegment, frame.length >= Self.fanOutOffset + 4 + 8 else {
      throw ArchiveError(.damagedIndex("no segment begins here"), offset: place)
    }
    fanOutBits = Int(file[offset + 28])
    base = file.u64(offset + 32)
    count = Int(file.u32(offset + 40))
    frameCount = Int(file.u32(offset + 44))
    guard fanOutBits <= Self.maximumFanOutBits, file[offset + 29] == 0, file[offset + 30] == 0,
      file[offset + 31] == 0, base < 1 << 62, count > 0, count <= Self.maximumCount,
      frameCount > 0,
      frame.length
        == Self.length(fanOutBits: fanOutBits, count: count, frameCount: frameCount)
    else { throw ArchiveError(.damagedIndex("a segment's header cannot be"), offset: place) }
  }

  /// How long the frame of a segment is.
  package static func length(fanOutBits: Int, count: Int, frameCount: Int) -> Int {
    fanOutOffset + 4 << fanOutBits + entryLength * count + FrameEntry.length * frameCount
      + SkippableFrame.checksumLength
  }

  /// Whether the length of a segment's frame goes into 32 bits.
  package static func fits(count: Int, frameCount: Int) -> Bool {
    length(fanOutBits: fanOutBits(count: count), count: count, frameCount: frameCount) - 8
      <= UInt32.max
  }

  /// How many fan-out bits a writer uses for so many sections.
  package static func fanOutBits(count: Int) -> Int {
    var bits = 0
    while bits < maximumFanOutBits, count > 32 << bits { bits += 1 }
    return bits
  }

  /// The ordinals of all sections whose key begins like `key`, as far as the segment can tell keys apart.
  ///
  /// - Throws: ``ArchiveError`` if the numbers it meets cannot be.
  package func candidates(_ key: SectionKey, in file: Span<UInt8>) throws(ArchiveError)
    -> [UInt64]
  {
    guard let bucket = entries(from: key.prefix, in: file) else {
      throw ArchiveError(.damagedIndex("its fan-out decreases"), offset: UInt64(frame.offset))
    }
    let short = SectionKey.short(key.prefix)
    var found: [UInt64] = []
    for number in bucket {
      guard entryKey(number, in: file) == short else { break }
      found.append(try ordinal(number, in: file))
    }
    return found
  }

  /// The first of ``candidates(_:in:)``, found without making a list; nil if there are none.
  ///
  /// - Throws: ``ArchiveError`` if the numbers it meets cannot be.
  func firstCandidate(_ key: SectionKey, in file: Span<UInt8>) throws(ArchiveError) -> UInt64? {
    guard let bucket = entries(from: key.prefix, in: file) else {
      throw ArchiveError(.damagedIndex("its fan-out decreases"), offset: UInt64(frame.offset))
    }
    guard let number = bucket.first,
      entryKey(number, in: file) == SectionKey.short(key.prefix)
    else { return nil }
    return try ordinal(number, in: file)
  }

  /// The ordinal that an entry names.
  private func ordinal(_ number: Int, in file: Span<UInt8>) throws(ArchiveError) -> UInt64 {
    let relative = file.u32(entriesOffset + number * Self.entryLength + 4)
    guard relative < count else {
      throw ArchiveError(
        .damagedIndex("an entry names an ordinal outside it"), offset: UInt64(frame.offset))
    }
    return base + UInt64(relative)
  }

  /// Whether a section may have this key, as far as can be told; numbers that cannot be say no.
  package func mayContain(_ key: UInt64, in file: Span<UInt8>) -> Bool {
    guard let first = entries(from: key, in: file)?.first else { return false }
    return entryKey(first, in: file) == SectionKey.short(key)
  }

  /// The entries with the leading bits of `key`, less those that are smaller; nil if the fan-out cannot be.
  private func entries(from key: UInt64, in file: Span<UInt8>) -> Range<Int>? {
    let bucket = SectionKey.leading(key, bits: fanOutBits)
    let short = SectionKey.short(key)
    var low = bucket == 0 ? 0 : fanOut(bucket - 1, in: file)
    let end = fanOut(bucket, in: file)
    guard low <= end, end <= count else { return nil }
    var high = end
    while low < high {
      let middle = low + (high - low) / 2
      if entryKey(middle, in: file) < short { low = middle + 1 } else { high = middle }
    }
    return low..<end
  }

  @inline(__always)
  private func fanOut(_ index: Int, in file: Span<UInt8>) -> Int {
    Int(file.u32(frame.offset + Self.fanOutOffset + 4 * index))
  }

  @inline(__always)
  private func entryKey(_ index: Int, in file: Span<UInt8>) -> UInt32 {
    file.u32(entriesOffset + index * Self.entryLength)
  }

  /// Entry number `index`: the short key in the upper half, the relative ordinal in the lower.
  ///
  /// - Precondition: `index` is below ``count``.
  @inline(__always)
  func entry(_ index: Int, in file: Span<UInt8>) -> UInt64 {
    let entry = file.u64(entriesOffset + index * Self.entryLength)
    return entry << 32 | entry >> 32
  }

  /// Entry number `index` of the frame table.
  ///
  /// - Precondition: `index` is below ``frameCount``.
  @inline(__always)
  package func frameEntry(_ index: Int, in file: Span<UInt8>) -> FrameEntry {
    FrameEntry(file, at: framesOffset + index * FrameEntry.length, base: base)
  }

  /// The number, in the frame table, of the frame in which the section `ordinal` begins; nil if the table says that it lies
  /// before the first.
  package func frameIndex(of ordinal: UInt64, in file: Span<UInt8>) -> Int? {
    // The first frame whose number is not below: if it is equal, the section begins it; otherwise the one before holds it.
    var (low, high) = (0, frameCount)
    while low < high {
      let middle = low + (high - low) / 2
      if frameEntry(middle, in: file).firstOrdinal < ordinal {
        low = middle + 1
      } else {
        high = middle
      }
    }
    if low < frameCount, frameEntry(low, in: file).firstOrdinal == ordinal { return low }
    return low == 0 ? nil : low - 1
  }
}
