/// What a block's bytes are, by the code in the
/// [multicodec table](https://github.com/multiformats/multicodec/blob/master/table.csv).
public struct Codec: RawRepresentable, Hashable, Sendable {
  /// The code.
  public let rawValue: UInt64

  /// The codec with this code, known or not.
  @inlinable
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Bytes without structure: AT Protocol's blobs.
  public static let raw = Codec(rawValue: 0x55)
  /// DAG-PB, the only codec of version 0.
  public static let dagPB = Codec(rawValue: 0x70)
  /// DAG-CBOR: AT Protocol's commits, tree nodes and records.
  public static let dagCBOR = Codec(rawValue: 0x71)
}

/// A content identifier: what bytes are, and the hash of the bytes.
///
/// Binary form, version 1: `varint(1) varint(codec) multihash`. Version 0: a SHA-256 multihash
/// alone, `12 20` and 32 bytes, and its codec is DAG-PB. Text form: version 1 in base 32 lower case
/// (`b…`) or base 58 (`z…`); version 0 in base 58 without a prefix (`Qm…`). The canonical text is
/// base 32, or `Qm…` for version 0. Source: the [CID
/// specification](https://github.com/multiformats/cid).
public struct CID: Hashable, Sendable, CustomStringConvertible {
  /// The two versions there are.
  public enum Version: UInt8, Sendable {
    /// A bare SHA-256 multihash.
    case v0 = 0
    /// With a version and a codec in front.
    case v1 = 1
  }

  /// The longest binary form that is read.
  public static let maximumLength = 4 * Varint.maximumLength + Multihash.maximumDigestLength

  /// The version.
  public let version: Version
  /// The codec.
  public let codec: Codec
  /// The hash of the bytes.
  public let multihash: Multihash

  /// A CID of version 1.
  @inlinable
  public init(codec: Codec, multihash: Multihash) {
    version = .v1
    self.codec = codec
    self.multihash = multihash
  }

  /// The CID of version 1, with SHA-256, of bytes that have this digest.
  @inlinable
  public init(codec: Codec, digest: SHA256Digest) {
    self.init(codec: codec, multihash: Multihash(digest))
  }

  /// The CID of version 1, with SHA-256, of `bytes`.
  public init(codec: Codec, hashing bytes: Span<UInt8>) {
    self.init(codec: codec, digest: SHA256.digest(of: bytes))
  }

  /// Reads the binary form at `offset` and moves `offset` after it.
  ///
  /// - Throws: ``CIDError``; its offset counts from the start of `bytes`.
  @inlinable @inline(__always)
  public init(_ bytes: Span<UInt8>, at offset: inout Int) throws(CIDError) {
    // 36 bytes, version 1 with SHA-256 and a codec of one byte: every CID that AT Protocol makes.
    if bytes.count - offset >= 36, bytes[offset] == 1, bytes[offset + 1] < 0x80,
      bytes[offset + 2] == 0x12, bytes[offset + 3] == 32
    {
      version = .v1
      codec = Codec(rawValue: UInt64(bytes[offset + 1]))
      multihash = Multihash(SHA256Digest(bytes, at: offset + 4))
      offset += 36
    } else {
      self = try Self.readUncommon(bytes, at: &offset)
    }
  }

  /// Reads a binary form that takes up all of `bytes`.
  ///
  /// - Throws: ``CIDError``, also when bytes follow it.
  @inlinable
  public init(_ bytes: Span<UInt8>) throws(CIDError) {
    var offset = 0
    try self.init(bytes, at: &offset)
    guard offset == bytes.count else { throw CIDError(.trailingBytes, offset: offset) }
  }

  private init(version: Version, codec: Codec, multihash: Multihash) {
    self.version = version
    self.codec = codec
    self.multihash = multihash
  }

  @usableFromInline
  static func readUncommon(_ bytes: Span<UInt8>, at offset: inout Int) throws(CIDError)
    -> CID
  {
    let start = offset
    if bytes.count - start >= 2, bytes[start] == 0x12, bytes[start + 1] == 0x20 {
      let multihash = try Multihash(bytes, at: &offset)
      return CID(version: .v0, codec: .dagPB, multihash: multihash)
    }
    guard try CIDError.varint(bytes, at: &offset) == 1 else {
      throw CIDError(.unknownVersion, offset: start)
    }
    let codec = try CIDError.varint(bytes, at: &offset)
    let multihash = try Multihash(bytes, at: &offset)
    return CID(version: .v1, codec: Codec(rawValue: codec), multihash: multihash)
  }

  /// The binary form.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(36)
    append(to: &result)
    return result
  }

  /// How many bytes the binary form has.
  public var byteCount: Int { CommonCID(self) != nil ? 36 : bytes.count }

  /// Appends the binary form.
  public func append(to result: inout [UInt8]) {
    if version == .v1 {
      result.append(1)
      Varint.append(codec.rawValue, to: &result)
    }
    multihash.append(to: &result)
  }

  /// Whether `body` is the block that this CID names.
  public func verify(_ body: Span<UInt8>) -> Multihash.Verification { multihash.verify(body) }

  /// Whether `body`, which has this SHA-256 digest, is the block that this CID names.
  public func verify(_ body: Span<UInt8>, hashedTo digest: SHA256Digest)
    -> Multihash.Verification
  {
    guard let expected = multihash.sha256 else { return verify(body) }
    return expected == digest ? .matches : .mismatch
  }

  /// Whether AT Protocol's data model allows it as a link: version 1, SHA-256, DAG-CBOR or raw
  /// ([data model](https://atproto.com/specs/data-model), "link and CID formats").
  @inlinable
  public var isATProtocolLink: Bool {
    version == .v1 && multihash.sha256 != nil && (codec == .dagCBOR || codec == .raw)
  }
}

/// Hashing.
extension CID {
  /// A digest is enough to tell CIDs apart, or nearly: what is equal has equal digests.
  public func hash(into hasher: inout Hasher) {
    if let digest = multihash.sha256 {
      digest.hash(into: &hasher)
    } else {
      multihash.hash(into: &hasher)
    }
  }
}

/// Text.
extension CID {
  /// The canonical text.
  public var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(59)
    appendText(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the canonical text, as ASCII.
  public func appendText(to text: inout [UInt8]) {
    if version == .v0 {
      text.append(contentsOf: Base58.encode(bytes).utf8)
    } else {
      text.append(UInt8(ascii: "b"))
      Base32.append(bytes.span, to: &text)
    }
  }

  /// Reads the text form: `b…`, `z…` or `Qm…`.
  ///
  /// - Throws: ``CIDError``; offsets of text count characters, those of what it decodes to count
  ///   bytes.
  public init(_ text: some StringProtocol) throws(CIDError) {
    let characters = Array(text.utf8)
    guard characters.count <= Self.maximumLength * 2 else {
      throw CIDError(.textTooLong, offset: 0)
    }
    if characters.count == 46, characters.starts(with: "Qm".utf8) {
      guard let bytes = Base58.decode(characters) else { throw CIDError(.notInAlphabet, offset: 0) }
      try self.init(bytes.span)
      guard version == .v0 else { throw CIDError(.unknownVersion, offset: 0) }
      return
    }
    let decoded: [UInt8]?
    switch characters.first {
    case UInt8(ascii: "b"): decoded = Base32.decode(characters.dropFirst())
    case UInt8(ascii: "z"): decoded = Base58.decode(characters.dropFirst())
    default: throw CIDError(.unknownMultibase, offset: 0)
    }
    guard let decoded else { throw CIDError(.notInAlphabet, offset: 1) }
    try self.init(decoded.span)
    guard version == .v1 else { throw CIDError(.unknownVersion, offset: 0) }
  }
}
