internal import CZstd

/// Compresses frames, one at a time, with a context of its own that is used again for each
/// (`ZSTD_CCtx`).
@safe
package final class ZstdCompressor: @unchecked Sendable {
  // One caller at a time: the context is borrowed from a pool, or owned by one task.
  private let context: OpaquePointer

  /// A compressor.
  package init() {
    guard let created = unsafe ZSTD_createCCtx() else { preconditionFailure("out of memory") }
    unsafe context = created
  }

  deinit { unsafe ZSTD_freeCCtx(context) }

  /// Replaces `bytes` by one zstd frame of `content`, with content size and checksum, and as a
  /// single segment.
  ///
  /// The C function is `ZSTD_compress2`. Returns false, with `bytes` empty, when the frame would
  /// take more than `limit` bytes.
  package func compress(
    _ content: Span<UInt8>, level: Int, limit: Int, into bytes: inout [UInt8]
  ) -> Bool {
    // A window as long as the content makes the encoder choose a single segment.
    let window = max(10, Int.bitWidth - (content.count - 1).leadingZeroBitCount)
    unsafe ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, CInt(clamping: level))
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, CInt(clamping: window))
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1)
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0)
    bytes.removeAll(keepingCapacity: true)
    // Room for the bound, not for the limit: with less the encoder takes a slower path.
    let bound = ZSTD_compressBound(content.count)
    bytes.append(addingCapacity: bound) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
        let count = unsafe content.withUnsafeBytes { source in
          unsafe ZSTD_compress2(
            context, buffer.baseAddress, bound, source.baseAddress, source.count)
        }
        initialized = ZSTD_isError(count) == 0 && count <= limit ? count : 0
      }
    }
    return !bytes.isEmpty
  }
}

/// Decompresses frames, one at a time, with a context of its own that is used again for each
/// (`ZSTD_DCtx`).
///
/// What it allocates is what the caller says the content is, which ``DataFrame`` has bounded; a
/// frame decompressed at once needs no window besides.
@safe
package final class ZstdDecompressor: @unchecked Sendable {
  // One caller at a time: the context is borrowed from a pool, or owned by one task.
  private let context: OpaquePointer

  /// A decompressor.
  package init() {
    guard let created = unsafe ZSTD_createDCtx() else { preconditionFailure("out of memory") }
    unsafe context = created
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  /// The content of `frame`; nil if it does not decompress to `size` bytes that its checksum is of.
  ///
  /// The C function is `ZSTD_decompressDCtx`.
  package func decompress(_ frame: Span<UInt8>, size: Int) -> [UInt8]? {
    let content = [UInt8](capacity: size) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
        let count = unsafe frame.withUnsafeBytes { source in
          unsafe ZSTD_decompressDCtx(
            context, buffer.baseAddress, size, source.baseAddress, source.count)
        }
        initialized = ZSTD_isError(count) == 0 ? count : 0
      }
    }
    return content.count == size ? content : nil
  }

  /// The readable content of a damaged frame.
  ///
  /// The first of the `size` bytes may be right; the rest are zero or wrong. The caller tells by
  /// the hashes of what is in it.
  package func salvage(_ frame: Span<UInt8>, size: Int) -> [UInt8] {
    var content = [UInt8](repeating: 0, count: size)
    unsafe content.withUnsafeMutableBytes { buffer in
      _ = unsafe frame.withUnsafeBytes { source in
        unsafe ZSTD_decompressDCtx(
          context, buffer.baseAddress, size, source.baseAddress, source.count)
      }
    }
    return content
  }
}
