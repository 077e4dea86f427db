/// A CID of version 1 with SHA-256 and a codec of one byte, as nearly all are, and all that AT
/// Protocol makes.
///
/// It lies inline as a whole, so that a copy costs no more than its bytes.
package struct CommonCID: Equatable, Sendable {
  /// The codec; its code is below 128.
  package let codec: Codec
  /// The digest of the bytes.
  package let digest: SHA256Digest

  /// The CID, if it is such a one.
  @inline(__always)
  package init?(_ cid: CID) {
    guard cid.version == .v1, cid.codec.rawValue < 0x80, let digest = cid.multihash.sha256 else {
      return nil
    }
    (codec, self.digest) = (cid.codec, digest)
  }

  /// The CID whose binary form stands at `offset`; nil if what stands there is another, or none.
  @inline(__always)
  package init?(_ bytes: Span<UInt8>, at offset: Int) {
    guard bytes.count - offset >= 36,
      UInt32(littleEndian: bytes.load(at: offset)) & 0xffff_80ff == Self.start
    else { return nil }
    codec = Codec(rawValue: UInt64(bytes[offset + 1]))
    digest = SHA256Digest(bytes, at: offset + 4)
  }

  /// How the binary form begins: 01, the codec, 12, 20.
  static let start: UInt32 = 0x2012_0001

  /// The CID.
  @inline(__always)
  package var cid: CID { CID(codec: codec, digest: digest) }
}
