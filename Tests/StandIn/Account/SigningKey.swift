import CCrypto
import IPLD

/// A key with which an account of the tests signs its commits: ECDSA with SHA-256, on either of AT
/// Protocol's curves.
///
/// Key and nonces follow from a text, so that the same commits come out each time. Such a key
/// protects nothing.
package struct SigningKey: Sendable {
  /// The two curves that there are.
  package enum Curve: Sendable, Hashable {
    /// secp256k1.
    case k256
    /// NIST P-256.
    case p256

    fileprivate var name: CInt { self == .k256 ? NID_secp256k1 : NID_X9_62_prime256v1 }
    /// The multicodec of its public keys, as a varint.
    fileprivate var codec: [UInt8] { self == .k256 ? [0xe7, 0x01] : [0x80, 0x24] }
  }

  /// The curve.
  package let curve: Curve
  private let secret: [UInt8]

  /// The key that follows from a text, in the way of `Fixtures/generate.py`.
  package init(_ curve: Curve = .k256, seed: String) {
    self.curve = curve
    let text = Array(seed.utf8)
    secret = Arithmetic(curve).scalar(SHA256.digest(of: text.span).bytes)
  }

  /// The public key as a DID document has it: `z`, and in base 58 the codec and the compressed
  /// point.
  package var multikey: String {
    "z" + Base58.encode(curve.codec + Arithmetic(curve).publicPoint(of: secret, compressed: true))
  }

  /// The public key as DID documents had it once: `z`, and in base 58 the point, not compressed,
  /// and no codec.
  package var legacyMultibase: String {
    "z" + Base58.encode(Arithmetic(curve).publicPoint(of: secret, compressed: false))
  }

  /// The signature of a message: `r` and `s`, 32 bytes each.
  ///
  /// - Parameter highS: whether to give the other of the two signatures, which AT Protocol forbids.
  package func sign(_ message: [UInt8], highS: Bool = false) -> [UInt8] {
    let digest = SHA256.digest(of: message.span).bytes
    let arithmetic = Arithmetic(curve)
    let nonce = arithmetic.scalar(Self.authenticate(digest, key: secret))
    return arithmetic.signature(digest: digest, secret: secret, nonce: nonce, highS: highS)
  }

  /// HMAC with SHA-256 (RFC 2104).
  private static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
    let inner = padded.map { $0 ^ 0x36 } + message
    let outer = padded.map { $0 ^ 0x5c } + SHA256.digest(of: inner.span).bytes
    return SHA256.digest(of: outer.span).bytes
  }
}

/// Numbers modulo the order of a curve, and points on it, as OpenSSL reckons with them.
///
/// None of its functions fails except for want of memory, which ends the process.
@safe private final class Arithmetic {
  private let group: OpaquePointer
  private let context: OpaquePointer
  private let order: OpaquePointer

  init(_ curve: SigningKey.Curve) {
    unsafe group = EC_GROUP_new_by_curve_name(curve.name)!
    unsafe context = BN_CTX_new()!
    unsafe order = BN_new()!
    unsafe EC_GROUP_get_order(group, order, context)
  }

  deinit {
    unsafe BN_free(order)
    unsafe BN_CTX_free(context)
    unsafe EC_GROUP_free(group)
  }

  /// The bytes as a number from 1 up to the order: modulo one less, and one more.
  func scalar(_ bytes: [UInt8]) -> [UInt8] {
    let number = unsafe integer(bytes)
    let one = unsafe integer([1])
    let modulus = unsafe BN_dup(order)!
    defer {
      unsafe BN_free(number)
      unsafe BN_free(one)
      unsafe BN_free(modulus)
    }
    unsafe BN_sub(modulus, modulus, one)
    unsafe BN_nnmod(number, number, modulus, context)
    unsafe BN_add(number, number, one)
    return unsafe self.bytes(number)
  }

  /// The point that belongs to a secret, encoded.
  func publicPoint(of secret: [UInt8], compressed: Bool) -> [UInt8] {
    let scalar = unsafe integer(secret)
    let point = unsafe EC_POINT_new(group)!
    defer {
      unsafe BN_free(scalar)
      unsafe EC_POINT_free(point)
    }
    unsafe EC_POINT_mul(group, point, scalar, nil, nil, context)
    let form = compressed ? POINT_CONVERSION_COMPRESSED : POINT_CONVERSION_UNCOMPRESSED
    var bytes = [UInt8](repeating: 0, count: 65)
    let count = bytes.count
    let length = unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe EC_POINT_point2oct(group, point, form, $0.baseAddress, count, context)
    }
    return Array(bytes[..<length])
  }

  /// `r` is the abscissa of the nonce's point, `s` = (digest + r · secret) / nonce; and −s is as
  /// good as s.
  func signature(digest: [UInt8], secret: [UInt8], nonce: [UInt8], highS: Bool) -> [UInt8] {
    let point = unsafe EC_POINT_new(group)!
    let nonce = unsafe integer(nonce)
    let secret = unsafe integer(secret)
    let digest = unsafe integer(digest)
    let (r, s, other) = unsafe (BN_new()!, BN_new()!, BN_new()!)
    defer {
      unsafe EC_POINT_free(point)
      unsafe BN_free(nonce)
      unsafe BN_free(secret)
      unsafe BN_free(digest)
      unsafe BN_free(r)
      unsafe BN_free(s)
      unsafe BN_free(other)
    }
    unsafe EC_POINT_mul(group, point, nonce, nil, nil, context)
    unsafe EC_POINT_get_affine_coordinates(group, point, r, nil, context)
    unsafe BN_nnmod(r, r, order, context)
    unsafe BN_mod_mul(s, r, secret, order, context)
    unsafe BN_mod_add(s, s, digest, order, context)
    unsafe BN_mod_inverse(nonce, nonce, order, context)
    unsafe BN_mod_mul(s, s, nonce, order, context)
    unsafe BN_sub(other, order, s)
    let isHigh = unsafe BN_cmp(s, other) > 0
    return unsafe bytes(r) + bytes(isHigh == highS ? s : other)
  }

  private func integer(_ bytes: [UInt8]) -> OpaquePointer {
    unsafe bytes.withUnsafeBufferPointer {
      unsafe BN_bin2bn($0.baseAddress, CInt($0.count), nil)!
    }
  }

  private func bytes(_ number: OpaquePointer) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 32)
    _ = unsafe bytes.withUnsafeMutableBufferPointer {
      unsafe BN_bn2binpad(number, $0.baseAddress, CInt($0.count))
    }
    return bytes
  }
}
