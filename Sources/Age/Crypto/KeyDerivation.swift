internal import CCrypto

/// Keys that follow from secrets: HKDF with SHA-256 (RFC 5869), scrypt (RFC 7914); and HMAC with
/// SHA-256 (RFC 2104).
enum KeyDerivation {
  /// How many bytes a derived key, and an HMAC, have.
  static let length = 32

  /// The key that HKDF makes of a secret.
  ///
  /// - Parameters:
  ///   - salt: may be empty.
  ///   - info: what the key is for.
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func hkdf(
    _ secret: SecretBytes, salt: [UInt8], info: [UInt8]
  ) throws(AgeError) -> SecretBytes {
    let library = try Libcrypto.open()
    return try unsafe SecretBytes(count: length) { (target) throws(AgeError) in
      let isDone = unsafe secret.withUnsafeBytes { secret in
        unsafe carpack_hkdf(
          library.functions, library.hkdf, secret.baseAddress, secret.count, salt, salt.count,
          info, info.count, target.baseAddress?.assumingMemoryBound(to: UInt8.self))
      }
      guard isDone == 1 else { throw library.failure(to: "derive a key") }
    }
  }

  /// The key that scrypt makes of a passphrase, with r = 8 and p = 1.
  ///
  /// It takes 2^(`workFactor` + 10) bytes of memory: 256 MiB at 18, 4 GiB at 22.
  ///
  /// - Parameter workFactor: log₂ N, from 1 on.
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func scrypt(
    _ passphrase: SecretBytes, salt: [UInt8], workFactor: Int
  ) throws(AgeError) -> SecretBytes {
    let library = try Libcrypto.open()
    let (n, r, p) = (UInt64(1) << UInt64(workFactor), UInt64(8), UInt64(1))
    // What libcrypto counts: N + 2 blocks of 128 r bytes, and p more. Its default limit is 32 MiB.
    let memory = 128 * r * (n + 2 + p)
    return try unsafe SecretBytes(count: length) { (target) throws(AgeError) in
      let isDone = unsafe passphrase.withUnsafeBytes { passphrase in
        unsafe library.functions.pointee.EVP_PBE_scrypt(
          passphrase.baseAddress?.assumingMemoryBound(to: CChar.self), passphrase.count, salt,
          salt.count, n, r, p, memory, target.baseAddress?.assumingMemoryBound(to: UInt8.self),
          target.count)
      }
      guard isDone == 1 else {
        throw library.failure(to: "derive a key with scrypt, which takes \(memory >> 20) MiB")
      }
    }
  }

  /// The HMAC of a message.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func hmac(_ message: [UInt8], key: SecretBytes) throws(AgeError) -> [UInt8] {
    let library = try Libcrypto.open()
    var code = [UInt8](repeating: 0, count: length)
    var count: UInt32 = 0
    let isDone = unsafe key.withUnsafeBytes { key in
      unsafe library.functions.pointee.HMAC(
        library.functions.pointee.EVP_sha256(), key.baseAddress, CInt(key.count), message,
        message.count, &code, &count) != nil
    }
    guard isDone, count == length else { throw library.failure(to: "compute an HMAC") }
    return code
  }
}
