/// Turns the stored bytes of data frames into content, from as many threads as ask.
package final class FrameDecoder: Sendable {
  /// Each is a few hundred kilobytes.
  private let decompressors = Pool { ZstdDecompressor() }

  package init() {}

  /// The content of a frame whose stored bytes are known to be right.
  ///
  /// - Throws: ``ArchiveError`` if it cannot be decompressed.
  package func content(of frame: DataFrame, in file: Span<UInt8>) throws(ArchiveError) -> [UInt8] {
    if frame.isRaw { return frame.rawContent(in: file) }
    let stored = file.extracting(frame.range)
    guard let content = decompressors.with({ $0.decompress(stored, size: frame.contentSize) })
    else { throw ArchiveError(.damagedFrame("it cannot be decompressed"), at: frame.offset) }
    return content
  }

  /// Whether a frame holds: its content has its checksum.
  func holds(_ frame: DataFrame, in file: Span<UInt8>) -> Bool {
    frame.isRaw
      ? frame.rawChecksumHolds(in: file) : (try? content(of: frame, in: file)) != nil
  }

  /// The prefix of the first section of a frame; and the content, if all of it had to be
  /// decompressed for that.
  ///
  /// - Throws: ``ArchiveError`` if it cannot be decompressed, or no section begins it.
  func beginning(of frame: DataFrame, in file: Span<UInt8>) throws(ArchiveError)
    -> (prefix: SectionPrefix, content: [UInt8]?)
  {
    let content =
      frame.isRaw
      ? frame.rawContent(in: file, limit: ArchiveLimits.sectionPrefix)
      : try content(of: frame, in: file)
    let prefix = try SectionPrefix(content.span, at: 0, place: UInt64(frame.offset))
    return (prefix, frame.isRaw ? nil : content)
  }

  /// The sections that begin in a frame; of a raw frame with a large one no more is read than the
  /// prefix.
  ///
  /// - Throws: ``ArchiveError`` if it cannot be decompressed, or holds something else.
  func sections(of frame: DataFrame, firstOrdinal: UInt64 = 0, in file: Span<UInt8>)
    throws(ArchiveError) -> DecodedFrame
  {
    let (prefix, content) = try beginning(of: frame, in: file)
    if prefix.isLarge {
      return DecodedFrame(frame, prefix, content ?? [], firstOrdinal: firstOrdinal)
    }
    return try DecodedFrame(
      content ?? frame.rawContent(in: file), firstOrdinal: firstOrdinal,
      place: UInt64(frame.offset))
  }

  /// What can be decompressed of a damaged frame; see ``ZstdDecompressor/salvage(_:size:)``.
  func salvage(_ frame: Span<UInt8>, size: Int) -> [UInt8] {
    decompressors.with { $0.salvage(frame, size: size) }
  }
}
