internal import Synchronization

/// Encoders at rest, one for each thread that encodes at a time.
final class EncoderPool: Sendable {
  private let idle = Mutex<[FrameEncoder]>([])

  /// Lends an encoder to `body`.
  func with(_ body: (FrameEncoder) -> Void) {
    let encoder = idle.withLock { $0.popLast() } ?? FrameEncoder()
    body(encoder)
    idle.withLock { $0.append(encoder) }
  }
}
