/// Where a table of CIDs begins to look for one.
///
/// The seed makes positions unpredictable: an attacker chooses the digests of blocks, and
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
  ///
  /// A common CID is all but its digest. Of others there are many for one digest, and they are
  /// hashed whole, lest they should all want the same slot.
  @inline(__always)
  package func callAsFunction(_ cid: CID) -> UInt64 {
    self(CommonCID(cid)?.digest ?? SHA256.digest(of: cid.bytes.span))
  }

  /// The hash of a common CID with this digest.
  @inline(__always)
  package func callAsFunction(_ digest: SHA256Digest) -> UInt64 {
    let words = digest.words
    // Every bit of the digest, with a bit of the seed on it, goes through two products before it
    // counts.
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
}
