internal import IPLD

/// Whole small sections on their way into one frame (FORMAT 3.2).
///
/// One owner at a time: the writer fills it, then one worker encodes it, then the writer takes it
/// back.
final class Pack: @unchecked Sendable {
  /// The ordinal of its first section.
  private(set) var firstOrdinal: UInt64
  /// The sections.
  private(set) var content: [UInt8] = []
  /// Where each begins.
  private(set) var starts: [UInt32] = []
  /// The frame, once it has been encoded.
  private(set) var stored: [UInt8] = []

  init(firstOrdinal: UInt64) {
    self.firstOrdinal = firstOrdinal
  }

  var isEmpty: Bool { starts.isEmpty }

  /// Whether a section of this many bytes still fits.
  func hasRoom(for length: Int) -> Bool {
    isEmpty || content.count + length <= ArchiveLimits.packContent
  }

  func append(_ cid: CID, _ body: Span<UInt8>) {
    if content.isEmpty { content.reserveCapacity(ArchiveLimits.packContent) }
    starts.append(UInt32(content.count))
    CARWriter.appendPrefix(cid, bodyLength: UInt64(body.count), to: &content)
    content.append(body)
  }

  /// Whether the section with this ordinal is here.
  func contains(_ ordinal: UInt64) -> Bool {
    ordinal >= firstOrdinal && ordinal - firstOrdinal < UInt64(starts.count)
  }

  /// The prefix of a section that is here.
  func prefix(of ordinal: UInt64) throws(ArchiveError) -> SectionPrefix {
    let content = content
    return try SectionPrefix(content.span, at: Int(starts[Int(ordinal - firstOrdinal)]), place: 0)
  }

  /// Moves the last section into a pack of its own.
  func splitLast() -> Pack {
    let last = Pack(firstOrdinal: firstOrdinal + UInt64(starts.count - 1))
    let start = Int(starts.removeLast())
    last.starts = [0]
    last.content = Array(content[start...])
    content.removeLast(content.count - start)
    return last
  }

  func encode(with encoder: FrameEncoder, level: Int) {
    let content = content
    encoder.encode(content.span, level: level, into: &stored)
  }

  /// Makes it an empty pack again, which keeps its memory.
  func reset(firstOrdinal: UInt64) {
    self.firstOrdinal = firstOrdinal
    content.removeAll(keepingCapacity: true)
    starts.removeAll(keepingCapacity: true)
    stored.removeAll(keepingCapacity: true)
  }
}
