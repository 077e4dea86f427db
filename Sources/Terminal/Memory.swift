internal import CGlibc

/// How the process asks the system for memory.
package enum Memory {
  /// Has the memory of frames that are done with serve the next ones: each is larger than what the
  /// C library would keep.
  package static func keepForFrames() { carpack_keep_freed_memory(8 << 20, 12 << 20, 2) }

  /// Has the memory of blobs that have been received serve the next ones, instead of going back to
  /// the system and coming back, page by page.
  ///
  /// How much that is at most, the budget for blobs says.
  package static func keepForBlobs() { carpack_keep_freed_memory(8 << 20, 32 << 20, 1) }
}
