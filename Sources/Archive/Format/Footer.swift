internal import IPLD

// offset  size  field
//      0    28  skippable frame, kind 2
//     28     2  u16 format version, major
//     30     2  u16 format version, minor
//     32     8  u64 required features
//     40     8  u64 optional features
//     48     8  u64 offset of this footer itself
//     56     8  u64 generation, from 1
//     64     8  u64 offset of the previous footer; 0 in generation 1
//     72     8  u64 number of sections in the file
//     80     8  u64 length of the CAR stream
//     88     8  u64 offset of the newest manifest's frame; 0 without one
//     96     8  u64 ordinal of the newest manifest; 0 without one
//    104     4  u32 length of its CID; 0 without one
//    108    40  that CID, then zeros
//    148     4  u32 number of live index segments
//    152   512  16 × (u64 offset, u64 base, u32 sections, u32 frames, u64 checksum), then zeros
//    664     8  XXH64

/// The last 672 bytes of a generation, which say what the file holds (FORMAT 4.2).
public enum Footer {
  /// How long it is.
  public static let length = 672
  /// The major version that is written, and the only one that is read.
  public static let majorVersion: UInt16 = 1
  /// The minor version that is written; others are read.
  public static let minorVersion: UInt16 = 0

  private static let segmentsOffset = 152
  private static let segmentLength = 32
  private static let cidCapacity = 40
  /// Version 1, DAG-CBOR, SHA-256 (FORMAT 6).
  private static let manifestCIDLength = 36

  /// The frame at `offset`, if the bytes there are a footer that holds: all that FORMAT section 5 asks for.
  package static func frame(_ file: Span<UInt8>, at offset: Int) -> SkippableFrame? {
    guard offset >= 0, offset <= file.count - length else { return nil }
    // An error here says only that no footer begins at this place, which is the answer.
    guard let frame = try? SkippableFrame(file, at: offset) else { return nil }
    guard frame.kind == .footer, frame.length == length,
      file.u64(offset + 48) == UInt64(offset), frame.holds(in: file)
    else { return nil }
    return frame
  }

  /// The last footer that holds and begins before `end`.
  package static func last(in file: Span<UInt8>, before end: Int) -> SkippableFrame? {
    var end = end
    while let magic = ArchiveMagic.last(in: file, before: end) {
      if let frame = frame(file, at: magic - 8) { return frame }
      end = magic
    }
    return nil
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
    func malformed(_ what: String) -> ArchiveError {
      ArchiveError(.malformedFooter(what), offset: place)
    }

    guard u16(28) == majorVersion else {
      throw ArchiveError(.unsupportedVersion(u16(28)), offset: place)
    }
    let features = FeatureFlags(required: u64(32), optional: u64(40))
    try features.check(offset: place)
    let (number, previous) = (u64(56), u64(64))
    guard number >= 1 else { throw malformed("generations count from 1") }
    guard (number == 1) == (previous == 0), previous < place else {
      throw malformed("it names an impossible footer before it")
    }
    let sectionCount = u64(72)
    guard sectionCount < 1 << 62, u64(80) < 1 << 62 else { throw malformed("its counts overflow") }
    let segmentCount = Int(u32(148))
    guard segmentCount <= ArchiveLimits.liveSegments else {
      throw malformed("it names \(segmentCount) index segments")
    }
    var segments: [Generation.Segment] = []
    var covered: UInt64 = 0
    for index in 0..<segmentCount {
      let at = segmentsOffset + index * segmentLength
      let segment = Generation.Segment(
        offset: u64(at), base: u64(at + 8), sectionCount: u32(at + 16), frameCount: u32(at + 20),
        checksum: u64(at + 24))
      guard segment.offset < place, segment.base == covered, segment.sectionCount > 0 else {
        throw malformed("its index segments do not follow one another")
      }
      covered += UInt64(segment.sectionCount)
      segments.append(segment)
    }
    guard covered == sectionCount else {
      throw malformed("its index segments cover \(covered) of \(sectionCount) sections")
    }
    return Generation(
      number: number, footerOffset: place, previousFooterOffset: number == 1 ? nil : previous,
      committedLength: UInt64(frame.end), sectionCount: sectionCount, streamLength: u64(80),
      head: try head(file, start: start, sectionCount: sectionCount), segments: segments,
      minorVersion: u16(30), features: features)
  }

  private static func head(_ file: Span<UInt8>, start: Int, sectionCount: UInt64)
    throws(ArchiveError) -> Generation.Head?
  {
    let place = UInt64(start)
    let frameOffset = file.u64(start + 88)
    let ordinal = file.u64(start + 96)
    let cidLength = Int(file.u32(start + 104))
    guard cidLength > 0 else {
      guard frameOffset == 0, ordinal == 0 else {
        throw ArchiveError(.malformedFooter("it places a manifest and names none"), offset: place)
      }
      return nil
    }
    guard cidLength == manifestCIDLength, frameOffset > 0, frameOffset < place,
      ordinal < sectionCount
    else {
      throw ArchiveError(.malformedFooter("it places its manifest nowhere"), offset: place)
    }
    do {
      let cid = try CID(file.extracting(start + 108..<start + 108 + cidLength))
      return Generation.Head(cid: cid, ordinal: ordinal, frameOffset: frameOffset)
    } catch {
      throw ArchiveError(.malformedFooter("of its manifest, \(error)"), offset: place)
    }
  }

  /// The 672 bytes that say `generation`.
  ///
  /// - Throws: ``ArchiveError`` for a head whose CID is not that of a manifest.
  package static func encode(_ generation: Generation) throws(ArchiveError) -> [UInt8] {
    let payload = length - SkippableFrame.minimumLength
    var bytes = SkippableFrame.header(.footer, payloadLength: payload) ?? []
    bytes.reserveCapacity(length)
    bytes.append(littleEndian: majorVersion)
    bytes.append(littleEndian: generation.minorVersion)
    bytes.append(littleEndian: generation.features.required)
    bytes.append(littleEndian: generation.features.optional)
    bytes.append(littleEndian: generation.footerOffset)
    bytes.append(littleEndian: generation.number)
    bytes.append(littleEndian: generation.previousFooterOffset ?? 0)
    bytes.append(littleEndian: generation.sectionCount)
    bytes.append(littleEndian: generation.streamLength)
    bytes.append(littleEndian: generation.head?.frameOffset ?? 0)
    bytes.append(littleEndian: generation.head?.ordinal ?? 0)
    let cid = generation.head?.cid.bytes ?? []
    if let head = generation.head, cid.count != manifestCIDLength {
      throw ArchiveError(.notAManifest(head.cid))
    }
    bytes.append(littleEndian: UInt32(cid.count))
    bytes.append(contentsOf: cid)
    bytes.append(contentsOf: repeatElement(0, count: cidCapacity - cid.count))
    bytes.append(littleEndian: UInt32(generation.segments.count))
    for segment in generation.segments {
      bytes.append(littleEndian: segment.offset)
      bytes.append(littleEndian: segment.base)
      bytes.append(littleEndian: segment.sectionCount)
      bytes.append(littleEndian: segment.frameCount)
      bytes.append(littleEndian: segment.checksum)
    }
    let end = length - SkippableFrame.checksumLength
    bytes.append(contentsOf: repeatElement(0, count: end - bytes.count))
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }
}
