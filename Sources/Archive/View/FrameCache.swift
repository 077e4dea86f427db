internal import Synchronization

/// The packs that were decompressed last, so that a run of sections, or one that jumps between a
/// few packs, decompresses each of them once.
final class FrameCache: Sendable {
  /// How much content it keeps: sixteen packs, unless fewer are wanted.
  private let capacity = Atomic<Int>(16 * ArchiveLimits.packContent)

  /// How many frames it keeps: each look-up passes through all of them.
  private static let maximumCount = 64

  /// The newest last.
  private let frames = Mutex<[DecodedFrame]>([])

  /// The frame at this place in the file, if it is here.
  func frame(at place: UInt64) -> DecodedFrame? {
    frames.withLock { frames in
      guard let index = frames.lastIndex(where: { $0.place == place }) else { return nil }
      let frame = frames.remove(at: index)
      frames.append(frame)
      return frame
    }
  }

  /// Keeps a frame, and lets go of the oldest.
  func insert(_ frame: DecodedFrame) {
    frames.withLock { frames in
      frames.removeAll { $0.place == frame.place }
      frames.append(frame)
      var held = frames.reduce(0) { $0 + $1.bytes.count }
      let capacity = capacity.load(ordering: .relaxed)
      while held > capacity || frames.count > Self.maximumCount, frames.count > 1 {
        held -= frames.removeFirst().bytes.count
      }
    }
  }

  /// Keeps so many packs from now on, and forgets everything.
  func keepOnly(_ packs: Int) {
    capacity.store(packs * ArchiveLimits.packContent, ordering: .relaxed)
    frames.withLock { $0.removeAll() }
  }

  /// Keeps as many packs as another cache.
  func takeCapacity(of other: FrameCache) {
    capacity.store(other.capacity.load(ordering: .relaxed), ordering: .relaxed)
  }
}
