internal import IPLD

// offset  size  field
//      0    28  skippable frame, kind 2
//     28     2  u16 format version, major
//     30     2  u16 format version, minor
//     32     8  u64 required features
//     40     8  u64 optional features
//     48     8  u64 generation, from 1
//     56     8  u64 offset of the previous footer; 0 in generation 1
//     64     8  u64 number of sections in the file
//     72     8  u64 length of the CAR stream
//     80     8  u64 offset of the newest manifest's frame; 0 without one
//     88     8  u64 ordinal of the newest manifest; 0 without one
//     96    32  the SHA-256 digest of its CID; zeros without one
//    128  24·k  the live index segments: u64 offset, u32 sections, u32 frames, u64 checksum
//  last 16   8  u64 offset of this footer itself
//   last 8   8  XXH64

/// The last bytes of a generation, which say what the file holds (FORMAT 4.2).
///
/// Every backup adds one, however little is new, so it is no longer than it must be: 144 bytes, and
/// 24 for each live index segment.
package enum Footer {
  /// Where footers begin in these bytes, by their first 28 bytes.
  static func places(in bytes: Span<UInt8>) -> [Int] {
    var (places, next) = ([Int](), 0)
    while let magic = ArchiveMagic.next(in: bytes, from: next) {
      next = magic + ArchiveMagic.length
      if magic >= 8, magic + 20 <= bytes.count, bytes.u32(magic + 16) == SkippableFrame.footer {
        places.append(magic - 8)
      }
    }
    return places
  }

  /// How long it is with this many live segments.
  package static func length(segments count: Int) -> Int {
    segmentsOffset + count * segmentLength + trailerLength
  }

  /// How long the longest is: as much as it takes to find the last one in a file that is in order.
  package static let maximumLength = length(segments: ArchiveLimits.liveSegments)
  /// The major version that is written, and the only one that is read.
  package static let majorVersion: UInt16 = 1
  /// The minor version that is written; others are read.
  package static let minorVersion: UInt16 = 0

  /// How many bytes lie between the last index segment that a footer names and the footer, where
  /// that was written; 0 if it names none.
  static func lengthFromLastSegment(in file: Span<UInt8>, _ frame: SkippableFrame) -> UInt64 {
    guard let count = segmentCount(length: frame.length), count > 0 else { return 0 }
    let own = file.u64(frame.end - trailerLength)
    let segment = file.u64(frame.offset + segmentsOffset + (count - 1) * segmentLength)
    return segment < own ? own - segment : 0
  }

  static let segmentsOffset = 128
  private static let segmentLength = 24
  /// Its own offset, and the checksum.
  static let trailerLength = 16

  /// The frame at `offset`, if the bytes there are a footer that holds: all that FORMAT section 5
  /// asks for.
  ///
  /// For a part of a file, `place` says where the frame was written.
  package static func frame(_ file: Span<UInt8>, at offset: Int, writtenAt place: Int? = nil)
    -> SkippableFrame?
  {
    // An error here says only that no footer begins at this place, which is the answer.
    guard let frame = try? SkippableFrame(file, at: offset), frame.kind == SkippableFrame.footer,
      segmentCount(length: frame.length) != nil,
      file.u64(frame.end - trailerLength) == UInt64(place ?? offset), frame.holds(in: file)
    else { return nil }
    return frame
  }

  /// The footer that ends at `end`, if one does: what stands before its checksum says where it
  /// begins.
  ///
  /// For a part of a file, `start` says where the part begins.
  package static func frame(_ bytes: Span<UInt8>, endingAt end: Int, from start: Int = 0)
    -> SkippableFrame?
  {
    guard end >= trailerLength, end <= bytes.count else { return nil }
    let own = bytes.u64(end - trailerLength)
    guard own >= UInt64(start), own - UInt64(start) < UInt64(end),
      let frame = frame(bytes, at: Int(own) - start, writtenAt: Int(own)), frame.end == end
    else { return nil }
    return frame
  }

  /// How many bytes the footer takes in which a file ends; nil if it ends in none.
  ///
  /// - Parameters:
  ///   - ending: The file's last bytes, as many as the longest footer has.
  ///   - count: How many bytes the file has.
  package static func length(atEndOf ending: [UInt8], count: UInt64) -> Int? {
    guard count <= UInt64(Int.max), ending.count <= Int(count) else { return nil }
    return frame(ending.span, endingAt: ending.count, from: Int(count) - ending.count)?.length
  }

  /// How many segments a footer of this length names; nil if there is none of that length.
  static func segmentCount(length: Int) -> Int? {
    let (count, rest) = (length - Self.length(segments: 0)).quotientAndRemainder(
      dividingBy: segmentLength)
    return rest == 0 && (0...ArchiveLimits.liveSegments).contains(count) ? count : nil
  }

  /// Where a footer lies if it is the last thing in a file of this many bytes.
  static func place(atEndOf count: Int) -> Range<Int> { max(0, count - maximumLength)..<count }

  /// The last footer that holds and begins before `end`.
  ///
  /// - Parameters:
  ///   - file: all bytes.
  ///   - end: where it has to have begun.
  ///   - willSearch: called with what is going to be read, from the end on.
  package static func last(
    in file: Span<UInt8>, before end: Int, willSearch: @escaping (Range<Int>) -> Void = { _ in }
  ) -> SkippableFrame? {
    ArchiveMagic.last(before: end, of: file.count) { range in
      willSearch(range)
      return file.array(range)
    } _: {
      frame(file, at: $0 - 8)
    }
  }

  /// Reads a footer that holds.
  ///
  /// - Throws: ``ArchiveError`` for an unknown version or feature, or numbers that cannot be.
  package static func read(_ file: Span<UInt8>, _ frame: SkippableFrame) throws(ArchiveError)
    -> Generation
  {
    let start = frame.offset
    let place = UInt64(start)
    func u64(_ offset: Int) -> UInt64 { file.u64(start + offset) }
    func u32(_ offset: Int) -> UInt32 { file.u32(start + offset) }
    func u16(_ offset: Int) -> UInt16 { file.u16(start + offset) }

    guard u16(28) == majorVersion else {
      throw ArchiveError(.unsupportedVersion(u16(28)), offset: place)
    }
    let features = FeatureFlags(required: u64(32), optional: u64(40))
    try features.check(offset: place)
    guard let segmentCount = segmentCount(length: frame.length) else {
      throw ArchiveError(.malformedFooter("its length is impossible"), offset: place)
    }
    var segments: [Generation.Segment] = []
    for index in 0..<segmentCount {
      let at = segmentsOffset + index * segmentLength
      segments.append(
        Generation.Segment(
          offset: u64(at), base: segments.last?.end ?? 0, sectionCount: u32(at + 8),
          frameCount: u32(at + 12), checksum: u64(at + 16)))
    }
    let generation = Generation(
      number: u64(48), footerOffset: place, previousFooterOffset: u64(56) == 0 ? nil : u64(56),
      committedLength: UInt64(frame.end), sectionCount: u64(64), streamLength: u64(72),
      head: try head(file, start: start), segments: segments, minorVersion: u16(30),
      features: features)
    try check(generation)
    return generation
  }

  /// Refuses numbers that no footer can have.
  ///
  /// - Throws: ``ArchiveError`` that says which.
  static func check(_ generation: Generation) throws(ArchiveError) {
    let place = generation.footerOffset
    func malformed(_ what: String) -> ArchiveError {
      ArchiveError(.malformedFooter(what), offset: place)
    }
    let (number, sectionCount) = (generation.number, generation.sectionCount)
    guard number >= 1 else { throw malformed("generations count from 1") }
    guard (number == 1) == (generation.previousFooterOffset == nil),
      generation.previousFooterOffset ?? 0 < place
    else { throw malformed("the place of the footer before it is impossible") }
    // Each section has an entry in an index segment before the footer, which takes bytes.
    guard sectionCount <= place, generation.streamLength < 1 << 62 else {
      throw malformed("it counts more than the file can hold")
    }
    guard generation.segments.allSatisfy({ $0.offset < place && $0.sectionCount > 0 }) else {
      throw malformed("it names an impossible index segment")
    }
    let covered = generation.segments.last?.end ?? 0
    guard covered == sectionCount else {
      throw malformed("its index segments cover \(covered) of \(sectionCount) sections")
    }
    if let head = generation.head, head.frameOffset >= place || head.ordinal >= sectionCount {
      throw malformed("the place of its manifest is impossible")
    }
  }

  private static func head(_ file: Span<UInt8>, start: Int) throws(ArchiveError)
    -> Generation.Head?
  {
    if let head = headClaim(in: file, at: start), head.frameOffset > 0 { return head }
    guard (88..<128).allSatisfy({ file[start + $0] == 0 }) else {
      throw ArchiveError(.malformedFooter("it names a manifest without its place"), at: start)
    }
    return nil
  }

  /// The bytes that say `generation`.
  ///
  /// - Throws: ``ArchiveError`` for a head whose CID is not that of a manifest.
  package static func encode(_ generation: Generation) throws(ArchiveError) -> [UInt8] {
    let length = length(segments: generation.segments.count)
    let payload = length - SkippableFrame.minimumLength
    var bytes = SkippableFrame.header(SkippableFrame.footer, payloadLength: payload) ?? []
    bytes.reserveCapacity(length)
    bytes.append(littleEndian: majorVersion)
    bytes.append(littleEndian: generation.minorVersion)
    bytes.append(littleEndian: generation.features.required)
    bytes.append(littleEndian: generation.features.optional)
    bytes.append(littleEndian: generation.number)
    bytes.append(littleEndian: generation.previousFooterOffset ?? 0)
    bytes.append(littleEndian: generation.sectionCount)
    bytes.append(littleEndian: generation.streamLength)
    bytes.append(littleEndian: generation.head?.frameOffset ?? 0)
    bytes.append(littleEndian: generation.head?.ordinal ?? 0)
    if let head = generation.head {
      guard head.cid.codec == .dagCBOR, let digest = head.cid.multihash.sha256 else {
        throw ArchiveError(.notAManifest(head.cid))
      }
      bytes.append(contentsOf: digest.bytes)
    } else {
      bytes.append(contentsOf: repeatElement(0, count: SHA256Digest.length))
    }
    for segment in generation.segments {
      bytes.append(littleEndian: segment.offset)
      bytes.append(littleEndian: segment.sectionCount)
      bytes.append(littleEndian: segment.frameCount)
      bytes.append(littleEndian: segment.checksum)
    }
    bytes.append(littleEndian: generation.footerOffset)
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }
}
