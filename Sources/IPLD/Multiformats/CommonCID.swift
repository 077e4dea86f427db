/// A CID of version 1 with SHA-256 and a codec of one byte, as nearly all are, and all that AT Protocol makes.
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

  /// The CID.
  @inline(__always)
  package var cid: CID { CID(codec: codec, digest: digest) }
}
