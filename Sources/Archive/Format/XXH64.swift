internal import CXXHash

/// The 64-bit xxHash with seed 0, the checksum of frames (FORMAT 1).
package enum XXH64 {
  /// The hash of one whole message: the C function `XXH64`.
  @inline(__always)
  package static func hash(_ bytes: Span<UInt8>) -> UInt64 {
    unsafe bytes.withUnsafeBytes { buffer in
      unsafe CXXHash.XXH64(buffer.baseAddress, buffer.count, 0)
    }
  }

  /// The hash of a message that arrives in parts.
  ///
  /// The C functions are `XXH64_createState`, `XXH64_reset`, `XXH64_update` and `XXH64_digest`.
  @safe
  package struct Stream: ~Copyable {
    private let state: OpaquePointer

    /// A hash of nothing yet.
    package init() {
      guard let created = unsafe XXH64_createState() else { preconditionFailure("out of memory") }
      unsafe state = created
      unsafe XXH64_reset(state, 0)
    }

    deinit { unsafe XXH64_freeState(state) }

    /// Adds `bytes` to the message.
    package mutating func update(_ bytes: Span<UInt8>) {
      unsafe bytes.withUnsafeBytes { buffer in
        _ = unsafe XXH64_update(state, buffer.baseAddress, buffer.count)
      }
    }

    /// The hash of the message so far.
    package func finish() -> UInt64 { unsafe XXH64_digest(state) }
  }
}
