internal import CGlibc

/// How the C library keeps memory for the process.
package enum Memory {
  /// Reuses the memory of finished frames for the next ones: each is larger than what the
  /// C library would keep.
  package static func keepForFrames() { carpack_keep_freed_memory(8 << 20, 12 << 20, 2) }

  /// Reuses the memory of received blobs for the next ones, instead of returning it to
  /// the system and getting it back, page by page.
  ///
  /// The budget for blobs limits how much that is.
  package static func keepForBlobs() { carpack_keep_freed_memory(8 << 20, 32 << 20, 1) }
}
