internal import CCrypto
internal import IPLD

/// Checks of points and signatures by libcrypto.
///
/// The C functions are `EVP_PKEY_fromdata` and `EVP_PKEY_verify`.
enum ECDSA {
  private static let library: carpack_signature_functions = unsafe CryptoLibrary.find {
    var functions = carpack_signature_functions()
    return unsafe carpack_find_signature_functions($0, &functions) != 0 ? functions : nil
  }

  /// Whether a point, compressed or not, lies on a curve.
  static func isPoint(_ point: [UInt8], on curve: VerificationKey.Curve) -> Bool {
    let key = unsafe publicKey(curve, point)
    unsafe library.EVP_PKEY_free(key)
    return unsafe key != nil
  }

  /// Whether a signature in DER over a message with this digest was made with the private key that
  /// belongs to a point.
  static func verifies(
    _ signature: [UInt8], of digest: SHA256Digest, by point: [UInt8],
    on curve: VerificationKey.Curve
  ) -> Bool {
    guard let key = unsafe publicKey(curve, point) else { return false }
    defer { unsafe library.EVP_PKEY_free(key) }
    guard let context = unsafe library.EVP_PKEY_CTX_new(key, nil) else { return false }
    defer { unsafe library.EVP_PKEY_CTX_free(context) }
    let digest = digest.bytes
    let isValid =
      unsafe library.EVP_PKEY_verify_init(context) == 1
      && library.EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
    // What it complains of stays behind with the thread, where TLS would take it for a complaint of
    // its own.
    if !isValid { library.ERR_clear_error() }
    return isValid
  }

  private static func publicKey(_ curve: VerificationKey.Curve, _ point: [UInt8]) -> OpaquePointer?
  {
    var library = library
    let key = unsafe carpack_ec_public_key(&library, curve.groupName, point, point.count)
    if unsafe key == nil { library.ERR_clear_error() }
    return unsafe key
  }
}

extension VerificationKey.Curve {
  /// Its name in libcrypto.
  var groupName: String { self == .k256 ? "secp256k1" : "prime256v1" }
}
