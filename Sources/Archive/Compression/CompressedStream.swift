internal import CZlib
internal import CZstd
package import IPLD

/// What is wrong with a stream that another program compressed.
package enum CompressedStreamError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// It is damaged at this byte, or is not what its first bytes claim.
  case damaged(offset: Int)
  /// It ends too early.
  case truncated
  /// Its content has more than this many bytes.
  case tooLong(limit: UInt64)
  /// It takes more memory to decompress than is given to it.
  case windowTooLarge

  /// Too much, or damaged.
  package var faultKind: FaultKind {
    switch self {
    case .tooLong, .windowTooLarge: .limit
    case .damaged, .truncated: .damage
    }
  }

  /// The message for people.
  package var description: String {
    switch self {
    case .damaged(let offset): "the compressed file is damaged, near byte \(offset)"
    case .truncated: "the compressed file is truncated"
    case .tooLong(let limit): "the compressed file has more than \(limit) bytes of content"
    case .windowTooLarge: "the compressed file needs a window of more than 128 MiB"
    }
  }
}

/// A file that `zstd` or `gzip` compressed (RFC 8878, RFC 1952), frame after frame, member after
/// member.
package enum CompressedStream: Sendable {
  case zstd
  case gzip

  /// The largest window, as a power of two: what `zstd --long` takes.
  private static let maximumWindow: CInt = 27
  /// How many bytes are decompressed at a time.
  private static let pieceLength = 1 << 18

  /// What a file is compressed with, as its first bytes say; nil if it is not.
  package init?(_ bytes: Span<UInt8>) {
    if bytes.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) {
      self = .zstd
    } else if bytes.starts(with: [0x1f, 0x8b, 0x08]) {
      self = .gzip
    } else {
      return nil
    }
  }

  /// Decompresses all of a file.
  ///
  /// - Parameters:
  ///   - bytes: the file.
  ///   - limit: the most bytes that its content may have.
  ///   - each: receives the content, piece by piece; what has been received of a stream that proves
  ///     damaged is worth nothing.
  /// - Throws: ``CompressedStreamError``; what `each` throws.
  package func decompress(
    _ bytes: Span<UInt8>, limit: UInt64, each: (Span<UInt8>) throws -> Void
  ) throws {
    switch self {
    case .zstd: try Self.decompressZstd(bytes, limit, each)
    case .gzip: try Self.decompressGzip(bytes, limit, each)
    }
  }

  /// Takes step after step until a frame or member ends with the file.
  ///
  /// - Parameter step: decompresses what the buffer has room for, from an offset on, which it
  ///   moves; returns how many bytes that is, and whether a frame or member has ended.
  private static func decompress(
    _ bytes: Span<UInt8>, _ limit: UInt64, _ each: (Span<UInt8>) throws -> Void,
    step: (UnsafeRawBufferPointer, inout Int, UnsafeMutableRawBufferPointer) throws -> (Int, Bool)
  ) throws {
    var piece = [UInt8](repeating: 0, count: pieceLength)
    var (offset, count, isAtEnd) = (0, UInt64(0), false)
    while offset < bytes.count || !isAtEnd {
      let before = offset
      var length = 0
      (length, isAtEnd) = try unsafe bytes.withUnsafeBytes { source in
        try unsafe piece.withUnsafeMutableBytes { try unsafe step(source, &offset, $0) }
      }
      guard length > 0 else {
        guard isAtEnd || offset > before else { throw CompressedStreamError.truncated }
        continue
      }
      count += UInt64(length)
      guard count <= limit else { throw CompressedStreamError.tooLong(limit: limit) }
      let content = piece
      try each(content.span.extracting(0..<length))
    }
  }

  /// The C functions are `ZSTD_decompressStream` and `ZSTD_DCtx_setParameter`.
  private static func decompressZstd(
    _ bytes: Span<UInt8>, _ limit: UInt64, _ each: (Span<UInt8>) throws -> Void
  ) throws {
    guard let context = unsafe ZSTD_createDCtx() else { preconditionFailure("out of memory") }
    defer { unsafe ZSTD_freeDCtx(context) }
    unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, maximumWindow)
    try unsafe decompress(bytes, limit, each) { source, offset, target in
      var input = unsafe ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: offset)
      var output = unsafe ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
      let status = unsafe ZSTD_decompressStream(context, &output, &input)
      unsafe offset = input.pos
      if ZSTD_isError(status) != 0 {
        throw ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge
          ? CompressedStreamError.windowTooLarge : .damaged(offset: offset)
      }
      return unsafe (output.pos, status == 0)
    }
  }

  /// The C functions are `inflate` and `inflateReset`.
  private static func decompressGzip(
    _ bytes: Span<UInt8>, _ limit: UInt64, _ each: (Span<UInt8>) throws -> Void
  ) throws {
    var stream = unsafe z_stream()
    guard unsafe carpack_inflate_init_gzip(&stream) == Z_OK else {
      preconditionFailure("out of memory")
    }
    defer { unsafe inflateEnd(&stream) }
    try unsafe decompress(bytes, limit, each) { source, offset, target in
      // Lengths in zlib have 32 bits.
      let end = min(source.count, offset + 1 << 30)
      let rest = unsafe UnsafeMutablePointer(
        mutating: source.baseAddress?.advanced(by: offset).assumingMemoryBound(to: UInt8.self))
      unsafe stream.next_in = rest
      unsafe stream.avail_in = UInt32(end - offset)
      unsafe stream.next_out = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
      unsafe stream.avail_out = UInt32(target.count)
      let status = unsafe inflate(&stream, Z_NO_FLUSH)
      unsafe offset = end - Int(stream.avail_in)
      switch status {
      case Z_OK: break
      case Z_STREAM_END: unsafe inflateReset(&stream)
      case Z_BUF_ERROR: throw CompressedStreamError.truncated
      default: throw CompressedStreamError.damaged(offset: offset)
      }
      return unsafe (target.count - Int(stream.avail_out), status == Z_STREAM_END)
    }
  }
}
