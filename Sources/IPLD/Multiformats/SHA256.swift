internal import CCrypto

/// A SHA-256 digest, 32 bytes, kept inline.
public struct SHA256Digest: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// How many bytes a digest has.
  public static let length = 32

  /// The digest's bytes in four words, each as it lies in memory.
  @usableFromInline
  package let words: (UInt64, UInt64, UInt64, UInt64)

  /// The digest made of four words as they lie in memory.
  @inlinable @inline(__always)
  package init(words: (UInt64, UInt64, UInt64, UInt64)) {
    self.words = words
  }

  /// The 32 bytes of `bytes` that begin at `offset`.
  ///
  /// - Precondition: they lie within `bytes`.
  @inlinable @inline(__always)
  public init(_ bytes: Span<UInt8>, at offset: Int = 0) {
    words = (
      bytes.load(at: offset), bytes.load(at: offset + 8), bytes.load(at: offset + 16),
      bytes.load(at: offset + 24)
    )
  }

  /// The 32 bytes.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(32)
    append(to: &result)
    return result
  }

  /// Appends the 32 bytes.
  public func append(to result: inout [UInt8]) {
    // The words lie in memory as the digest does.
    unsafe withUnsafeBytes(of: words) { unsafe result.append(contentsOf: $0) }
  }

  /// 64 hexadecimal digits.
  public var description: String { Hex.encode(bytes) }

  /// Whether all bytes are equal.
  @inlinable @inline(__always)
  public static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  /// Feeds the digest into a hasher.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }

  /// The order of the bytes.
  public static func < (left: Self, right: Self) -> Bool {
    (
      UInt64(bigEndian: left.words.0), UInt64(bigEndian: left.words.1),
      UInt64(bigEndian: left.words.2), UInt64(bigEndian: left.words.3)
    ) < (
      UInt64(bigEndian: right.words.0), UInt64(bigEndian: right.words.1),
      UInt64(bigEndian: right.words.2), UInt64(bigEndian: right.words.3)
    )
  }
}

/// SHA-256 (FIPS 180-4), of a message at once or as it arrives.
///
/// The C functions are `SHA256_Init`, `SHA256_Update` and `SHA256_Final` of OpenSSL's libcrypto.
public struct SHA256: ~Copyable {
  private var context = SHA256_CTX()

  /// A hash of nothing yet.
  public init() {
    unsafe SHA256_Init(&context)
  }

  /// Adds `bytes` to the message.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBytes { buffer in
      _ = unsafe SHA256_Update(&context, buffer.baseAddress, buffer.count)
    }
  }

  /// The digest of the message so far, after which a new message begins.
  public mutating func finish() -> SHA256Digest {
    let digest = close()
    unsafe SHA256_Init(&context)
    return digest
  }

  /// The digest of the message so far; the context is of no more use.
  private mutating func close() -> SHA256Digest {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    unsafe withUnsafeMutableBytes(of: &words) { buffer in
      _ = unsafe SHA256_Final(buffer.baseAddress, &context)
    }
    return SHA256Digest(words: words)
  }

  /// The digest of one whole message.
  public static func digest(of bytes: Span<UInt8>) -> SHA256Digest {
    var hash = SHA256()
    hash.update(bytes)
    return hash.close()
  }
}
