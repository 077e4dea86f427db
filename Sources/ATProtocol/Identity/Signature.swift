internal import IPLD

extension VerificationKey {
  /// Whether a signature over a message was made with the private key that belongs to this one.
  ///
  /// ECDSA over the message's SHA-256, r ‖ s of 32 bytes each. Only the lower of the two possible
  /// values of s is accepted, so that no second signature can be derived from a known one. Source:
  /// [cryptography](https://atproto.com/specs/cryptography), "ECDSA signature malleability".
  package func verifies(_ signature: [UInt8], of message: Span<UInt8>) -> Bool {
    verifies(signature, of: SHA256.digest(of: message))
  }

  /// This check for a message whose SHA-256 is known, so that it is hashed once for many keys.
  func verifies(_ signature: [UInt8], of digest: SHA256Digest) -> Bool {
    guard signature.count == Commit.signatureLength else { return false }
    let (r, s) = (signature[..<32], signature[32...])
    // Both are compared byte by byte, as numbers of equal length can be.
    guard !curve.halfOrder.lexicographicallyPrecedes(s) else { return false }
    return ECDSA.verifies(Self.der(r, s), of: digest, by: compressedPoint, on: curve)
  }

  /// A signature in libcrypto's form: a DER sequence of two integers.
  private static func der(_ r: ArraySlice<UInt8>, _ s: ArraySlice<UInt8>) -> [UInt8] {
    let integers = [r, s].flatMap { number in
      var digits = Array(number.drop { $0 == 0 })
      // An integer has a digit at least, and none whose first bit would make it negative.
      if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
      return [0x02, UInt8(digits.count)] + digits
    }
    return [0x30, UInt8(integers.count)] + integers
  }
}

extension VerificationKey.Curve {
  /// Half the order of the curve's group, rounded down: the largest s of a signature.
  fileprivate var halfOrder: [UInt8] {
    self == .k256 ? Self.halfOrderOfK256 : Self.halfOrderOfP256
  }

  /// The lower of two values of s that make the same signature: this one, or the group's order less
  /// it.
  func lower(_ s: [UInt8]) -> [UInt8] {
    halfOrder.lexicographicallyPrecedes(s) ? orderLess(s) : s
  }

  /// Whether a number of 32 bytes is a private key: from 1 up to less than the order.
  func isScalar(_ bytes: ArraySlice<UInt8>) -> Bool {
    let zero = [UInt8](repeating: 0, count: 32)
    return !zero.elementsEqual(bytes) && bytes.lexicographicallyPrecedes(orderLess(zero))
  }

  /// The group's order less a number of 32 bytes.
  private func orderLess(_ number: [UInt8]) -> [UInt8] {
    // The order is odd: twice its half, and one.
    var (result, carry) = (number, 1)
    for index in number.indices.reversed() {
      carry += 2 * Int(halfOrder[index]) - Int(number[index])
      result[index] = UInt8(truncatingIfNeeded: carry)
      carry >>= 8
    }
    return result
  }

  private static let halfOrderOfK256: [UInt8] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
  ]

  private static let halfOrderOfP256: [UInt8] = [
    0x7f, 0xff, 0xff, 0xff, 0x80, 0x00, 0x00, 0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xde, 0x73, 0x7d, 0x56, 0xd3, 0x8b, 0xcf, 0x42, 0x79, 0xdc, 0xe5, 0x61, 0x7e, 0x31, 0x92, 0xa8,
  ]
}
