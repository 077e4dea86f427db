package import IPLD

/// The beginning of the key that a section is found by (FORMAT 4.1).
///
/// The key is the digest of a CID with SHA-256, and the SHA-256 of any other CID, whose digest may
/// be anything. A segment keeps some leading bits of it,
/// `IndexForm.keyBits(of:)`, so that segments can be merged without reading a section; 64 are
/// kept in memory. A hit is confirmed against the whole CID in any case.
package struct SectionKey: Hashable, Sendable {
  /// The key's first eight bytes as a number.
  package let prefix: UInt64

  /// The key that begins like this.
  package init(prefix: UInt64) { self.prefix = prefix }

  /// The key of a CID.
  @inline(__always)
  package init(_ cid: CID) {
    if let digest = cid.multihash.sha256 {
      prefix = UInt64(bigEndian: digest.words.0)
    } else {
      prefix = UInt64(bigEndian: SHA256.digest(of: cid.bytes.span).words.0)
    }
  }

  /// The first `bits` bits as a number.
  @inline(__always)
  package static func leading(_ prefix: UInt64, bits: Int) -> Int {
    bits == 0 ? 0 : Int(truncatingIfNeeded: prefix >> (64 - UInt64(bits)))
  }

  /// Whether the first `bits` bits of another key are the same.
  func begins(like other: SectionKey, bits: Int) -> Bool {
    (prefix ^ other.prefix).leadingZeroBitCount >= bits
  }
}
