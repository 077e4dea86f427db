internal import IPLD

/// Which layer of the tree a key belongs to: half the leading zero bits of its SHA-256, rounded
/// down.
///
/// Source: [repository](https://atproto.com/specs/repository), "MST structure": a fan-out of 4.
package enum MSTLayer {
  /// No key lies higher: a digest has 256 bits.
  package static let maximum = 128

  /// The layer of a key.
  package static func layer(of key: Span<UInt8>) -> Int {
    let words = SHA256.digest(of: key).words
    var zeros = 0
    for word in [words.0, words.1, words.2, words.3] {
      let word = UInt64(bigEndian: word)
      zeros += word.leadingZeroBitCount
      if word != 0 { break }
    }
    return zeros / 2
  }
}
