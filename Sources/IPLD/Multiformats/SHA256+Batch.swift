internal import CSHA256

extension SHA256 {
  /// Whether this processor hashes two messages in less time than one after the other: x86-64 with
  /// the SHA extensions.
  package static let hasLanes = carpack_sha256_has_lanes() != 0

  /// The digests of several messages that lie in the same bytes.
  ///
  /// Short messages take little more than half the time of ``digest(of:)`` where the processor has
  /// instructions for it; elsewhere this is the same.
  ///
  /// - Parameters:
  ///   - messages: where each begins and ends.
  ///   - bytes: what they lie in.
  ///   - usesLanes: whether two are hashed at a time.
  /// - Precondition: all messages lie within `bytes`, and there are lanes if they are to be used.
  package static func digests(
    of messages: [Range<Int>], in bytes: Span<UInt8>, usesLanes: Bool = hasLanes
  ) -> [SHA256Digest] {
    guard usesLanes, messages.count > 1 else {
      return messages.map { digest(of: bytes.extracting($0)) }
    }
    precondition(messages.allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= bytes.count })
    return unsafe [SHA256Digest](unsafeUninitializedCapacity: messages.count) { digests, count in
      count = messages.count
      unsafe bytes.withUnsafeBufferPointer { bytes in
        unsafe messages.withUnsafeBytes { bounds in
          // A range lies in memory as its two bounds, and a digest as its 32 bytes.
          unsafe carpack_sha256_lanes(
            bytes.baseAddress, bounds.baseAddress?.assumingMemoryBound(to: Int.self),
            messages.count,
            UnsafeMutableRawPointer(digests.baseAddress)?.assumingMemoryBound(to: UInt8.self))
        }
      }
    }
  }
}
