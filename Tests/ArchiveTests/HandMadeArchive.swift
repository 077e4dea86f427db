import IPLD
import SystemPackage
import TestSupport

@testable import Archive

/// An archive put together frame by frame, so that it can also be one that no writer makes.
struct HandMadeArchive {
  private(set) var bytes: [UInt8] = []
  private(set) var generation: Generation?
  /// What has been added since the last segment.
  private var keys = KeyList()
  private var frames: [FrameEntry] = []
  private var base: UInt64 = 0
  private var streamLength: UInt64 = 0
  /// The segments that the next footer names.
  var segments: [Generation.Segment] = []
  var head: Generation.Head?
  /// The form of its index segments.
  var form = IndexForm.packed

  init() {
    let header = SampleArchive.header
    DataFrame.appendRaw(header.span, to: &bytes)
    streamLength = UInt64(header.count)
  }

  /// The number of the next section.
  var next: UInt64 { base + UInt64(keys.count) }

  /// A section as it stands in the stream.
  static func section(_ cid: CID, _ body: [UInt8]) -> [UInt8] {
    var section: [UInt8] = []
    CARWriter.appendPrefix(cid, bodyLength: UInt64(body.count), to: &section)
    return section + body
  }

  /// Adds a data frame in which sections with these CIDs begin; without any, it continues with the
  /// one before.
  mutating func addFrame(_ content: [UInt8], _ cids: [CID], level: Int? = nil) {
    var stored: [UInt8] = []
    FrameEncoder().encode(content.span, level: level, into: &stored)
    addStored(stored, contentSize: content.count, cids)
  }

  /// Adds a data frame as it is to be stored.
  mutating func addStored(_ stored: [UInt8], contentSize: Int, _ cids: [CID]) {
    frames.append(
      FrameEntry(
        offset: UInt64(bytes.count), checksum: XXH64.hash(stored.span),
        firstOrdinal: cids.isEmpty ? next - 1 : next, storedLength: UInt32(stored.count)))
    for cid in cids { keys.append(cid.sectionKey) }
    streamLength += UInt64(contentSize)
    bytes += stored
  }

  /// Adds a frame of these sections.
  mutating func addPack(_ sections: [(CID, [UInt8])], level: Int? = nil) {
    addFrame(
      sections.flatMap { Self.section($0.0, $0.1) }, sections.map(\.0), level: level)
  }

  /// Adds the segment of what has been added since the last.
  mutating func addSegment() throws {
    let builder = IndexSegmentBuilder(
      form, base: base, keys: keys, frames: frames[...])
    let offset = UInt64(bytes.count)
    var segment: [UInt8] = []
    let checksum = try builder.encode { segment += $0.array }
    bytes += segment
    segments.append(
      .init(
        offset: offset, base: base, sectionCount: UInt32(keys.count),
        frameCount: UInt32(frames.count), checksum: checksum))
    base = next
    keys = KeyList()
    frames = []
  }

  /// Adds any skippable frame.
  mutating func addSkippable(_ kind: UInt32, _ payload: [UInt8]) {
    var frame = SkippableFrame.header(kind, payloadLength: payload.count) ?? []
    frame += payload
    frame.append(littleEndian: XXH64.hash(frame.span))
    bytes += frame
  }

  /// Adds bytes that nothing knows of.
  mutating func addRaw(_ more: [UInt8]) { bytes += more }

  /// Ends a generation.
  mutating func addFooter(sectionCount: UInt64? = nil, streamLength: UInt64? = nil) throws {
    let footer = Generation(
      number: (generation?.number ?? 0) + 1, footerOffset: UInt64(bytes.count),
      previousFooterOffset: generation?.footerOffset,
      committedLength: UInt64(bytes.count + Footer.length(segments: segments.count)),
      sectionCount: sectionCount ?? base,
      streamLength: streamLength ?? self.streamLength, head: head, segments: segments,
      minorVersion: form == .packed ? 1 : 0,
      features: FeatureFlags(required: form == .packed ? FeatureFlags.packedIndex : 0))
    bytes += try Footer.encode(footer)
    generation = footer
  }

  /// Writes it to a file and opens that.
  func open(in folder: TemporaryFolder) throws -> ArchiveReader {
    let path = FilePath(folder.file("hand-made"))
    let file = try FileDescriptor.open(
      path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
    try file.closeAfter { _ = try file.writeAll(bytes) }
    return try ArchiveReader(path: path)
  }
}
