internal import CCrypto
internal import IPLD

/// A private key that its owner keeps in a file, on one of AT Protocol's two curves.
///
/// The file is PEM: PKCS#8 (RFC 5958), encrypted with a passphrase or not, as `openssl genpkey`
/// writes it. The key itself stays with libcrypto, and becomes a value only
/// where its owner has it written down.
@safe
package final class PrivateKey: @unchecked Sendable {
  // libcrypto counts references to a key atomically, and changes none after it is made; each
  // signature has a context of its own.
  /// Why a text is not a private key that can be used.
  package enum Fault: String, Error, CustomStringConvertible {
    /// It is not a private key in one of the forms that are read.
    case notAKey = "it holds no private key in PEM, hexadecimal or base58 (z…)"
    /// It is encrypted, but no passphrase was given.
    case encrypted = "it is encrypted, but no passphrase was given"
    /// It is encrypted with another passphrase.
    case wrongPassphrase = "it is encrypted with another passphrase"
    /// It is of a kind other than k256 and p256.
    case unknownCurve = "it is neither a secp256k1 key nor a P-256 key"
    /// libcrypto does not sign with it.
    case cannotSign = "the key cannot be used to sign"

    /// The message for people.
    package var description: String { rawValue }
  }

  private static let library: carpack_signing_functions = unsafe CryptoLibrary.find {
    var functions = carpack_signing_functions()
    return unsafe carpack_find_signing_functions($0, &functions) != 0 ? functions : nil
  }

  /// The longest DER signature on these curves, in bytes, with room to spare.
  private static let maximumDER = 80
  /// How long the name of a curve may be, in bytes.
  private static let maximumName = 64

  private let key: OpaquePointer
  /// The public key that belongs to it.
  package let verificationKey: VerificationKey

  /// Reads a key.
  ///
  /// - Parameters:
  ///   - pem: the text of the file.
  ///   - passphrase: what it is encrypted with; nil if none was given.
  /// - Throws: ``Fault``.
  package convenience init(pem: [UInt8], passphrase: [UInt8]? = nil) throws(Fault) {
    var library = Self.library
    // An empty array has no address to give.
    let bytes = (passphrase ?? []) + [0]
    var (key, wasAsked): (OpaquePointer?, Bool) = (nil, false)
    unsafe bytes.withUnsafeBufferPointer { buffer in
      var context = unsafe carpack_passphrase(
        bytes: buffer.baseAddress, length: passphrase.map { CInt($0.count) } ?? -1,
        was_asked_for: 0)
      unsafe key = carpack_private_key(&library, pem, CInt(pem.count), &context)
      wasAsked = unsafe context.was_asked_for != 0
    }
    guard let key = unsafe key else {
      let fault: Fault = passphrase == nil ? .encrypted : .wrongPassphrase
      throw Self.failed(wasAsked ? fault : .notAKey)
    }
    try unsafe self.init(taking: key)
  }

  /// Takes ownership of a libcrypto key.
  init(taking key: OpaquePointer) throws(Fault) {
    do throws(Fault) {
      verificationKey = try unsafe Self.publicKey(of: key)
    } catch {
      unsafe Self.library.EVP_PKEY_free(key)
      throw error
    }
    unsafe self.key = unsafe key
  }

  /// A fault of libcrypto, whose error queue is cleared: the error would stay with the thread,
  /// where TLS would take it for its own.
  static func failed(_ fault: Fault) -> Fault {
    library.ERR_clear_error()
    return fault
  }

  /// Calls `body` with libcrypto's key.
  func withKey<Value>(_ body: (OpaquePointer) -> Value) -> Value { unsafe body(key) }

  deinit { unsafe Self.library.EVP_PKEY_free(key) }

  private static func publicKey(of key: OpaquePointer) throws(Fault) -> VerificationKey {
    var name = [CChar](repeating: 0, count: maximumName)
    var length = 0
    guard unsafe library.EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else {
      throw failed(.unknownCurve)
    }
    let curve: VerificationKey.Curve
    switch String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) {
    case "secp256k1": curve = .k256
    case "prime256v1", "P-256", "secp256r1": curve = .p256
    default: throw .unknownCurve
    }
    var point = [UInt8](repeating: 0, count: VerificationKey.uncompressedLength)
    guard
      unsafe library.EVP_PKEY_get_octet_string_param(key, "pub", &point, point.count, &length) == 1
    else { throw failed(.notAKey) }
    guard let key = try? VerificationKey(point: Array(point.prefix(length)), on: curve) else {
      throw .notAKey
    }
    return key
  }

  /// Signs a message: ECDSA over its SHA-256, r ‖ s of 32 bytes each, s the lower of the two valid
  /// values.
  ///
  /// - Throws: ``Fault/cannotSign``.
  package func sign(_ message: Span<UInt8>) throws(Fault) -> [UInt8] {
    let digest = SHA256.digest(of: message).bytes
    var der = [UInt8](repeating: 0, count: Self.maximumDER)
    var length = der.count
    let context = unsafe Self.library.EVP_PKEY_CTX_new(key, nil)
    defer { unsafe Self.library.EVP_PKEY_CTX_free(context) }
    guard
      unsafe context != nil, unsafe Self.library.EVP_PKEY_sign_init(context) == 1,
      unsafe Self.library.EVP_PKEY_sign(context, &der, &length, digest, digest.count) == 1,
      let (r, s) = Self.numbers(in: der.prefix(length))
    else { throw Self.failed(.cannotSign) }
    return r + verificationKey.curve.lower(s)
  }

  /// The two integers of a DER sequence, in 32 bytes each.
  private static func numbers(in der: ArraySlice<UInt8>) -> (r: [UInt8], s: [UInt8])? {
    var rest = der.dropFirst(2)
    func next() -> [UInt8]? {
      guard rest.first == 0x02, let length = rest.dropFirst().first else { return nil }
      let digits = rest.dropFirst(2).prefix(Int(length)).drop { $0 == 0 }
      rest = rest.dropFirst(2 + Int(length))
      guard digits.count <= 32 else { return nil }
      return [UInt8](repeating: 0, count: 32 - digits.count) + digits
    }
    guard let r = next(), let s = next() else { return nil }
    return (r, s)
  }
}
