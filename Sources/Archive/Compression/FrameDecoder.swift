internal import IPLD
internal import Synchronization

/// Turns the stored bytes of data frames into content, from as many threads as ask.
package final class FrameDecoder: Sendable {
  /// Contexts at rest.
  ///
  /// Each is a few hundred kilobytes, and there are never more than threads that decompress at a
  /// time.
  private let idle = Mutex<[ZstdDecompressor]>([])

  package init() {}

  /// The content of a frame whose stored bytes are known to be right.
  ///
  /// - Throws: ``ArchiveError`` if it does not decompress.
  package func content(of frame: DataFrame, in file: Span<UInt8>) throws(ArchiveError) -> [UInt8] {
    if frame.isRaw { return RawFrame.content(of: frame, in: file) }
    let decompressor = idle.withLock { $0.popLast() } ?? ZstdDecompressor()
    defer { idle.withLock { $0.append(decompressor) } }
    guard
      let content = decompressor.decompress(
        file.extracting(frame.range), size: frame.contentSize)
    else {
      throw ArchiveError(
        .damagedFrame("it does not decompress"), offset: UInt64(frame.offset))
    }
    return content
  }

  /// What can be had of the content of a damaged frame; see ``ZstdDecompressor/salvage(_:size:)``.
  package func salvage(_ frame: DataFrame, in file: Span<UInt8>) -> [UInt8] {
    if frame.isRaw { return RawFrame.content(of: frame, in: file) }
    let decompressor = idle.withLock { $0.popLast() } ?? ZstdDecompressor()
    defer { idle.withLock { $0.append(decompressor) } }
    return decompressor.salvage(file.extracting(frame.range), size: frame.contentSize)
  }
}
