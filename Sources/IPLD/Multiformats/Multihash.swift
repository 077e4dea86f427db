/// The function that made a multihash, by its code in the
/// [multicodec table](https://github.com/multiformats/multicodec/blob/master/table.csv).
public struct HashFunction: RawRepresentable, Hashable, Sendable {
  /// The code.
  public let rawValue: UInt64

  /// The function with this code, known or not.
  @inlinable
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The bytes themselves.
  package static let identity = HashFunction(rawValue: 0x00)
  /// SHA-256, the function of AT Protocol.
  package static let sha256 = HashFunction(rawValue: 0x12)
}

/// A digest that says which function made it: `varint(function) varint(length) digest`.
///
/// SHA-256 and identity digests can be checked. Others are carried as they are, and ``verify(_:)``
/// says that it cannot tell.
public struct Multihash: Hashable, Sendable {
  /// The longest digest that is read.
  ///
  /// Hash functions stay below 128 bytes; identity digests hold any content.
  public static let maximumDigestLength = 2048

  /// The result of comparing bytes with a digest.
  public enum Verification: Sendable {
    /// The bytes are those the digest was made of.
    case matches
    /// They are other bytes.
    case mismatch
    /// The function is not one that can be computed here.
    case cannotVerify
  }

  /// SHA-256 digests of full length lie inline, because there are millions of them.
  @usableFromInline
  enum Storage: Hashable, Sendable {
    case sha256(SHA256Digest)
    case other(HashFunction, [UInt8])
  }

  @usableFromInline
  let storage: Storage

  /// The multihash of a SHA-256 digest.
  @inlinable
  public init(_ digest: SHA256Digest) {
    storage = .sha256(digest)
  }

  /// The multihash of a digest by any function.
  public init(function: HashFunction, digest: [UInt8]) {
    if function == .sha256 && digest.count == 32 {
      storage = .sha256(SHA256Digest(digest.span))
    } else {
      storage = .other(function, digest)
    }
  }

  /// The function.
  public var function: HashFunction {
    switch storage {
    case .sha256: .sha256
    case .other(let function, _): function
    }
  }

  /// The digest's bytes.
  public var digest: [UInt8] {
    switch storage {
    case .sha256(let digest): digest.bytes
    case .other(_, let bytes): bytes
    }
  }

  /// The digest, if it is a SHA-256 digest of full length.
  @inlinable
  public var sha256: SHA256Digest? {
    if case .sha256(let digest) = storage { digest } else { nil }
  }

  /// Whether `bytes` are what the digest was made of.
  ///
  /// A truncated SHA-256 digest is one that cannot be verified: what it would prove is not what its
  /// function promises.
  public func verify(_ bytes: Span<UInt8>) -> Verification {
    switch storage {
    case .sha256(let digest):
      return SHA256.digest(of: bytes) == digest ? .matches : .mismatch
    case .other(.identity, let digest):
      return digest.count == bytes.count && bytes.starts(with: digest) ? .matches : .mismatch
    case .other:
      return .cannotVerify
    }
  }

  /// Appends the binary form.
  public func append(to bytes: inout [UInt8]) {
    Varint.append(function.rawValue, to: &bytes)
    switch storage {
    case .sha256(let digest):
      bytes.append(32)
      digest.append(to: &bytes)
    case .other(_, let digest):
      Varint.append(UInt64(digest.count), to: &bytes)
      bytes.append(contentsOf: digest)
    }
  }

  /// Reads the binary form at `offset` and moves `offset` after it.
  ///
  /// - Throws: ``CIDError`` for a bad varint, a digest over ``maximumDigestLength`` or one that the
  ///   bytes cut short.
  public init(_ bytes: Span<UInt8>, at offset: inout Int) throws(CIDError) {
    let code = try CIDError.varint(bytes, at: &offset)
    let start = offset
    let length = try CIDError.varint(bytes, at: &offset)
    guard length <= UInt64(Self.maximumDigestLength) else {
      throw CIDError(.digestTooLong, offset: start)
    }
    guard let range = bytes.readRange(&offset, length: Int(length)) else {
      throw CIDError(.truncated, offset: bytes.count)
    }
    if code == HashFunction.sha256.rawValue && length == 32 {
      storage = .sha256(SHA256Digest(bytes, at: range.lowerBound))
    } else {
      storage = .other(HashFunction(rawValue: code), bytes.array(range))
    }
  }
}
