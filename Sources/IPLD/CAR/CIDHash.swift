/// Where a table of CIDs begins to look for one.
///
/// The seed makes positions unpredictable: whoever writes the blocks chooses their digests, and
/// nothing says that the blocks hash to
/// them.
package struct CIDHash: Sendable {
  private let seed = (
    UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max),
    UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)
  )

  /// A hash with a seed of its own.
  package init() {}

  /// The hash of a CID, all bits of which are of use.
  @inline(__always)
  package func callAsFunction(_ cid: CID) -> UInt64 {
    let words = (Self.commonDigest(cid) ?? SHA256.digest(of: cid.bytes.span)).words
    // Every bit of the digest, with a bit of the seed on it, goes through two products before it counts.
    let first = Self.fold(words.0 ^ seed.0, words.1 ^ seed.1)
    let second = Self.fold(words.2 ^ seed.2, words.3 ^ seed.3)
    return Self.fold(first ^ seed.2, second ^ seed.1)
  }

  /// Both halves of a product.
  @inline(__always)
  private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  /// The digest, if it all but identifies the CID: version 1, SHA-256, one of the 128 codecs that take one byte.
  ///
  /// Other CIDs are many for one digest, and are hashed whole, lest they should all want the same slot.
  @inline(__always)
  package static func commonDigest(_ cid: CID) -> SHA256Digest? {
    cid.version == .v1 && cid.codec.rawValue < 0x80 ? cid.multihash.sha256 : nil
  }
}
