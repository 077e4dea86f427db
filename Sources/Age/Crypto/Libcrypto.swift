internal import CCrypto
internal import LibC

/// libcrypto, opened when the first of its functions is needed (`dlopen`), and what is looked up in
/// it once.
///
/// Nothing here changes after it was opened: all of it may be used by several threads.
@safe final class Libcrypto: @unchecked Sendable {
  /// The functions; never freed, as the library is never closed.
  let functions: UnsafePointer<carpack_age_functions>
  /// ChaCha20-Poly1305: an `EVP_CIPHER`.
  let cipher: OpaquePointer
  /// HKDF: an `EVP_KDF`.
  let hkdf: OpaquePointer

  private static let opened = Result { () throws(AgeError) in try Libcrypto() }

  /// The library.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``.
  static func open() throws(AgeError) -> Libcrypto { try opened.get() }

  private init() throws(AgeError) {
    let library = unsafe carpack_crypto_open()
    var found = carpack_age_functions()
    guard unsafe library != nil, unsafe carpack_find_age_functions(library, &found) != 0 else {
      let reason = unsafe dlerror().map { unsafe String(cString: $0) }
      throw .noCryptoLibrary(reason ?? "no reason given")
    }
    guard let cipher = unsafe found.EVP_CIPHER_fetch(nil, "ChaCha20-Poly1305", nil),
      let hkdf = unsafe found.EVP_KDF_fetch(nil, "HKDF", nil)
    else {
      found.ERR_clear_error()
      throw .noCryptoLibrary("it lacks ChaCha20-Poly1305 or HKDF")
    }
    let functions = UnsafeMutablePointer<carpack_age_functions>.allocate(capacity: 1)
    unsafe functions.initialize(to: found)
    unsafe self.functions = UnsafePointer(functions)
    unsafe self.cipher = cipher
    unsafe self.hkdf = hkdf
  }

  /// The error of an operation that failed.
  ///
  /// libcrypto leaves its errors in a queue of the thread, where TLS would take them for its own:
  /// they are removed.
  func failure(to operation: String) -> AgeError {
    clearErrors()
    return .cryptoFailed(operation)
  }

  /// Clears libcrypto's error queue.
  func clearErrors() { unsafe functions.pointee.ERR_clear_error() }

  /// Fills memory with random bytes: `RAND_priv_bytes`.
  ///
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  func fillRandomly(_ target: UnsafeMutableRawBufferPointer) throws(AgeError) {
    let start = unsafe target.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard unsafe functions.pointee.RAND_priv_bytes(start, CInt(target.count)) == 1 else {
      throw failure(to: "generate random bytes")
    }
  }

  /// Random bytes that are not secret: a nonce, a salt.
  ///
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  func randomBytes(_ count: Int) throws(AgeError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var target = bytes.mutableSpan
    try unsafe target.withUnsafeMutableBytes { (target) throws(AgeError) in
      try unsafe fillRandomly(target)
    }
    return bytes
  }
}
