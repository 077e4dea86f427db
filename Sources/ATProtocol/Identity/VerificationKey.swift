internal import IPLD

/// A public key that signatures are checked with: a point on one of AT Protocol's two curves.
///
/// Source: [cryptography](https://atproto.com/specs/cryptography), "public key encoding".
package struct VerificationKey: Hashable, Sendable {
  /// The curves that AT Protocol knows.
  package enum Curve: String, Hashable, Sendable, CaseIterable {
    /// secp256k1, which Bitcoin uses; most accounts have it.
    case k256 = "k256"
    /// NIST P-256, also secp256r1 or prime256v1.
    case p256 = "p256"

    /// The first bytes of a Multikey: the curve's multicodec as a varint.
    var prefix: [UInt8] { self == .k256 ? [0xe7, 0x01] : [0x80, 0x24] }
  }

  /// The curve.
  package let curve: Curve
  /// The point in 33 bytes: 2 or 3, which says whether y is even or odd, and x.
  package let compressedPoint: [UInt8]

  /// How long a compressed point is, in bytes.
  static let compressedLength = 33
  /// How long a point with both coordinates is, in bytes.
  static let uncompressedLength = 65

  /// A key from a point, compressed or not.
  ///
  /// - Throws: ``VerificationKeyError`` if it is of another length or form, or lies beside the
  ///   curve.
  package init(point: [UInt8], on curve: Curve) throws(VerificationKeyError) {
    switch (point.count, point.first) {
    case (Self.compressedLength, 2), (Self.compressedLength, 3): compressedPoint = point
    case (Self.uncompressedLength, 4):
      compressedPoint = [2 | point[Self.uncompressedLength - 1] & 1] + point[1..<33]
    default: throw .malformedPoint
    }
    guard ECDSA.isPoint(point, on: curve) else { throw .notOnCurve }
    self.curve = curve
  }

  /// Reads `did:key:z…`.
  ///
  /// - Throws: ``VerificationKeyError``.
  package init(didKey: String) throws(VerificationKeyError) {
    guard didKey.hasPrefix(Self.didKeyScheme) else { throw .notADIDKey }
    try self.init(multikey: String(didKey.dropFirst(Self.didKeyScheme.count)))
  }

  /// Reads a `Multikey`: `z`, then in base 58 the curve's multicodec and the compressed point.
  ///
  /// - Throws: ``VerificationKeyError``.
  package init(multikey: String) throws(VerificationKeyError) {
    let bytes = try Self.base58(multikey)
    guard let curve = Curve.allCases.first(where: { bytes.starts(with: $0.prefix) }) else {
      throw .unknownCurve
    }
    let point = Array(bytes.dropFirst(curve.prefix.count))
    // A Multikey has one form only.
    guard point.count == Self.compressedLength else { throw .malformedPoint }
    try self.init(point: point, on: curve)
  }

  /// Reads the `publicKeyMultibase` of the key types that DID documents of 2022 and 2023 have,
  /// whose name says which curve: `z`, then the point of either form in base 58.
  ///
  /// - Throws: ``VerificationKeyError``.
  package init(legacyMultibase: String, on curve: Curve) throws(VerificationKeyError) {
    try self.init(point: try Self.base58(legacyMultibase), on: curve)
  }

  /// The key as `did:key:z…`.
  package var didKey: String { Self.didKeyScheme + multikey }

  /// The key as a `Multikey`.
  package var multikey: String { "z" + Base58.encode(curve.prefix + compressedPoint) }

  private static let didKeyScheme = "did:key:"

  private static func base58(_ text: String) throws(VerificationKeyError) -> [UInt8] {
    guard text.utf8.first == UInt8(ascii: "z"),
      let bytes = Base58.decode(Array(text.utf8.dropFirst()))
    else { throw .notBase58 }
    return bytes
  }
}

extension VerificationKey: CustomStringConvertible {
  /// The key as `did:key:z…`.
  package var description: String { didKey }
}

/// Why a text is not a public key.
package enum VerificationKeyError: String, Error, CustomStringConvertible {
  /// It does not begin with `did:key:`.
  case notADIDKey = "the key is not a did:key"
  /// It is not multibase `z`, or too long.
  case notBase58 = "the key is not multibase in base 58"
  /// Its multicodec is that of neither curve.
  case unknownCurve = "the key is neither a k256 key nor a p256 key"
  /// The bytes after the multicodec do not have the length or the first byte of a point.
  case malformedPoint = "the key is malformed: it holds no point"
  /// The point does not lie on the curve.
  case notOnCurve = "the key is malformed: its point is not on the curve"

  /// The message for people.
  package var description: String { rawValue }
}
