import IPLD

// Blocks made by hand.

extension CID {
  /// The CID of `bytes`.
  static func naming(_ bytes: [UInt8], codec: Codec = .dagCBOR) -> CID {
    CID(codec: codec, hashing: bytes.span)
  }

  /// A CID of nothing in particular, a different one for each number.
  static func example(_ number: Int = 0, codec: Codec = .dagCBOR) -> CID {
    naming(Array("example \(number)".utf8), codec: codec)
  }
}
