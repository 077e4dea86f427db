internal import Synchronization

/// The packs that were decompressed last, so that a run of sections, or one that jumps between a
/// few packs, decompresses each of them once.
final class FrameCache: Sendable {
  /// How many frames it keeps: each look-up passes through all of them.
  private static let maximumCount = 64

  /// The newest last; and how many packs' content is kept: sixteen, unless fewer are wanted.
  private let kept = Mutex<(frames: [DecodedFrame], packs: Int)>(([], 16))

  /// The frame at this place in the file, if it is cached.
  func frame(at place: UInt64) -> DecodedFrame? {
    kept.withLock { kept in
      guard let index = kept.frames.lastIndex(where: { $0.place == place }) else { return nil }
      let frame = kept.frames.remove(at: index)
      kept.frames.append(frame)
      return frame
    }
  }

  /// Keeps a frame, and releases the oldest.
  func insert(_ frame: DecodedFrame) {
    kept.withLock { kept in
      kept.frames.removeAll { $0.place == frame.place }
      kept.frames.append(frame)
      var held = kept.frames.reduce(0) { $0 + $1.bytes.count }
      let capacity = kept.packs * ArchiveLimits.packContent
      while held > capacity || kept.frames.count > Self.maximumCount, kept.frames.count > 1 {
        held -= kept.frames.removeFirst().bytes.count
      }
    }
  }

  /// Keeps this many packs from now on, and forgets everything.
  func keepOnly(_ packs: Int) {
    kept.withLock { $0 = ([], packs) }
  }

  /// Keeps as many packs as another cache.
  func takeCapacity(of other: FrameCache) {
    keepOnly(other.kept.withLock { $0.packs })
  }
}
