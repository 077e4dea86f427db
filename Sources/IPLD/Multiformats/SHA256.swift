internal import CCrypto
internal import CSHA256

/// A SHA-256 digest, 32 bytes, kept inline.
public struct SHA256Digest: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// How many bytes a digest has.
  public static let length = 32

  /// The digest's bytes in four words, each as it lies in memory.
  public let words: (UInt64, UInt64, UInt64, UInt64)

  /// The digest made of four words as they lie in memory.
  @inlinable @inline(__always)
  public init(words: (UInt64, UInt64, UInt64, UInt64)) {
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
/// Where the processor has instructions for it, they are used; elsewhere it is libcrypto's.
package struct SHA256: ~Copyable {
  private var message = carpack_sha256_message()
  private let usesLanes: Bool

  /// A hash of nothing yet.
  ///
  /// - Precondition: the processor has the instructions, if they are to be used.
  package init(usesLanes: Bool = hasLanes) {
    self.usesLanes = usesLanes
    begin()
  }

  private mutating func begin() {
    if usesLanes {
      unsafe carpack_sha256_begin(&message)
    } else {
      unsafe CryptoDigest.begin(&message)
    }
  }

  /// Adds `bytes` to the message.
  package mutating func update(_ bytes: Span<UInt8>) {
    let usesLanes = usesLanes
    unsafe bytes.withUnsafeBufferPointer { buffer in
      if usesLanes {
        unsafe carpack_sha256_add(&message, buffer.baseAddress, buffer.count)
      } else {
        unsafe CryptoDigest.add(UnsafeRawBufferPointer(buffer), to: &message)
      }
    }
  }

  /// The digest of the message so far, after which a new message begins.
  package mutating func finish() -> SHA256Digest {
    let digest = close()
    begin()
    return digest
  }

  /// The digest of the message so far; the state is of no more use.
  private mutating func close() -> SHA256Digest {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    let usesLanes = usesLanes
    unsafe withUnsafeMutableBytes(of: &words) { buffer in
      let digest = unsafe buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
      if usesLanes {
        unsafe carpack_sha256_end(&message, digest)
      } else {
        unsafe CryptoDigest.end(&message, into: digest)
      }
    }
    return SHA256Digest(words: words)
  }

  /// The digest of one whole message.
  package static func digest(of bytes: Span<UInt8>) -> SHA256Digest {
    var hash = SHA256()
    hash.update(bytes)
    return hash.close()
  }
}

/// SHA-256 as libcrypto has it: `SHA256_Init`, `SHA256_Update` and `SHA256_Final`, whose state
/// takes the place of that of the instructions.
private enum CryptoDigest {
  private static let functions: carpack_digest_functions = unsafe CryptoLibrary.find {
    var functions = carpack_digest_functions()
    return unsafe carpack_find_digest_functions($0, &functions) != 0 ? functions : nil
  }

  private static func state(_ message: UnsafeMutablePointer<carpack_sha256_message>)
    -> UnsafeMutablePointer<SHA256_CTX>
  {
    precondition(
      MemoryLayout<SHA256_CTX>.size <= MemoryLayout<carpack_sha256_message>.size
        && MemoryLayout<SHA256_CTX>.alignment <= MemoryLayout<carpack_sha256_message>.alignment)
    return unsafe UnsafeMutableRawPointer(message).assumingMemoryBound(to: SHA256_CTX.self)
  }

  static func begin(_ message: UnsafeMutablePointer<carpack_sha256_message>) {
    _ = unsafe functions.SHA256_Init(state(message))
  }

  static func add(
    _ bytes: UnsafeRawBufferPointer, to message: UnsafeMutablePointer<carpack_sha256_message>
  ) {
    _ = unsafe functions.SHA256_Update(state(message), bytes.baseAddress, bytes.count)
  }

  static func end(
    _ message: UnsafeMutablePointer<carpack_sha256_message>,
    into digest: UnsafeMutablePointer<UInt8>?
  ) {
    _ = unsafe functions.SHA256_Final(digest, state(message))
  }
}
