/// Turns content into the stored bytes of a data frame, compressed where that pays and raw where it
/// does not (FORMAT 3.1 to 3.3).
///
/// 1. What comes out is always a frame in canonical form that does not contain the magic.
/// 2. The same content at the same level always gives the same bytes, so that the number of
///    workers does not show.
package final class FrameEncoder: Sendable {
  /// The level at which it is tried whether content shrinks at all: media does not, and no level
  /// changes that.
  private static let trialLevel = 3

  private let compressor = ZstdCompressor()

  package init() {}

  /// Replaces `bytes` by the frame of `content`.
  ///
  /// - Parameters:
  ///   - content: Not empty, and within ``ArchiveLimits/frameContent``.
  ///   - level: The zstd level, or nil to store it raw.
  ///   - bytes: What the frame goes into.
  /// - Returns: Whether it is compressed.
  @discardableResult
  package func encode(_ content: Span<UInt8>, level: Int?, into bytes: inout [UInt8]) -> Bool {
    if let level, compress(content, level: level, into: &bytes) { return true }
    bytes.removeAll(keepingCapacity: true)
    // Room for the block headers, too.
    bytes.reserveCapacity(content.count + 16 + 3 * (content.count / DataFrame.blockContent + 2))
    DataFrame.appendRaw(content, to: &bytes)
    return false
  }

  private func compress(_ content: Span<UInt8>, level: Int, into bytes: inout [UInt8]) -> Bool {
    let limit = Self.limit(content.count)
    guard mayShrink(content, into: &bytes) else { return false }
    for level in level > Self.trialLevel ? [Self.trialLevel, level] : [level] {
      guard compressor.compress(content, level: level, limit: limit, into: &bytes) else {
        return false
      }
    }
    // The library writes the one header form; if another version ever does not, raw is right
    // anyway.
    guard let frame = try? DataFrame(bytes.span, at: 0, limit: bytes.count),
      frame.length == bytes.count, frame.contentSize == content.count, !frame.isRaw
    else { return false }
    return ArchiveMagic.next(in: bytes.span) == nil
  }

  /// Less than a fiftieth saved is not worth the decompression, and raw content can be hashed where
  /// it lies.
  private static func limit(_ count: Int) -> Int { count - count / 50 }

  /// Whether it is worth trying to compress long content: if its beginning, middle and end do not
  /// shrink, the rest is media, too.
  private func mayShrink(_ content: Span<UInt8>, into bytes: inout [UInt8]) -> Bool {
    guard content.count >= Self.sampledLength else { return true }
    let length = min(Self.sampleLength, content.count / 16)
    var sample: [UInt8] = []
    sample.reserveCapacity(3 * length)
    for start in [0, (content.count - length) / 2, content.count - length] {
      sample.append(content.extracting(start..<start + length))
    }
    return compressor.compress(
      sample.span, level: Self.trialLevel, limit: Self.limit(sample.count), into: &bytes)
  }

  /// How long content is of which samples are tried first, in bytes.
  private static let sampledLength = 64 << 10
  /// How long each of the three samples is at most, in bytes.
  private static let sampleLength = 4 << 10
}
