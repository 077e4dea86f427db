internal import CCrypto

/// ChaCha20-Poly1305 (RFC 8439) under one key, without additional data.
///
/// ```
/// n    ciphertext, as long as the plaintext
/// 16   tag
/// ```
///
/// The context, an `EVP_CIPHER_CTX`, keeps the key for all messages; libcrypto wipes it when it is
/// freed. A nonce must never seal two messages.
@safe
struct AuthenticatedCipher: ~Copyable, @unchecked Sendable {
  /// How many bytes a tag, a nonce and a key have.
  static let tagLength = 16
  static let nonceLength = 12
  static let keyLength = 32

  private let library: Libcrypto
  private let context: OpaquePointer

  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  init(key: SecretBytes) throws(AgeError) {
    precondition(key.count == Self.keyLength)
    let library = try Libcrypto.open()
    guard let context = unsafe library.functions.pointee.EVP_CIPHER_CTX_new() else {
      throw library.failure(to: "create a cipher")
    }
    let isDone = unsafe key.withUnsafeBytes { key in
      unsafe library.functions.pointee.EVP_CipherInit_ex(
        context, library.cipher, nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, 1)
    }
    guard isDone == 1 else {
      unsafe library.functions.pointee.EVP_CIPHER_CTX_free(context)
      throw library.failure(to: "set a key")
    }
    self.library = library
    unsafe self.context = context
  }

  deinit { unsafe library.functions.pointee.EVP_CIPHER_CTX_free(context) }

  /// Encrypts a message, and appends its tag.
  ///
  /// - Parameter target: begins with room for the message and its tag. It may begin where the
  ///   message does, and overlap it in no other way.
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  mutating func seal(
    _ message: UnsafeRawBufferPointer, nonce: Nonce, into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) {
    precondition(target.count >= message.count + Self.tagLength)
    guard begin(nonce, isSealing: true), unsafe update(message, target), finish(),
      let tag = unsafe target.baseAddress?.advanced(by: message.count),
      unsafe library.functions.pointee.EVP_CIPHER_CTX_ctrl(
        context, EVP_CTRL_AEAD_GET_TAG, CInt(Self.tagLength), tag) == 1
    else { throw library.failure(to: "encrypt") }
  }

  /// Decrypts a message that ends with its tag; whether it is genuine.
  ///
  /// If it is not, what was decrypted of it is overwritten.
  ///
  /// - Parameter target: begins with room for the message. It may begin where the sealed message
  ///   does, and overlap it in no other way.
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  mutating func open(
    _ sealed: UnsafeRawBufferPointer, nonce: Nonce, into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) -> Bool {
    let count = sealed.count - Self.tagLength
    precondition(count >= 0 && target.count >= count)
    guard begin(nonce, isSealing: false), let start = sealed.baseAddress,
      // libcrypto reads the tag and declares it writable.
      unsafe library.functions.pointee.EVP_CIPHER_CTX_ctrl(
        context, EVP_CTRL_AEAD_SET_TAG, CInt(Self.tagLength),
        UnsafeMutableRawPointer(mutating: start + count)) == 1,
      unsafe update(UnsafeRawBufferPointer(rebasing: sealed[..<count]), target)
    else { throw library.failure(to: "decrypt") }
    guard finish() else {
      library.clearErrors()
      unsafe SecretArena.wipe(UnsafeMutableRawBufferPointer(rebasing: target[..<count]))
      return false
    }
    return true
  }

  /// Decrypts a message without checking its tag: bits that were changed come out changed.
  ///
  /// - Parameter target: as of ``open(_:nonce:into:)``.
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  mutating func openUnverified(
    _ sealed: UnsafeRawBufferPointer, nonce: Nonce, into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) {
    let count = sealed.count - Self.tagLength
    precondition(count >= 0 && target.count >= count)
    guard begin(nonce, isSealing: false),
      unsafe update(UnsafeRawBufferPointer(rebasing: sealed[..<count]), target)
    else { throw library.failure(to: "decrypt") }
  }

  private func begin(_ nonce: Nonce, isSealing: Bool) -> Bool {
    var nonce = nonce
    return unsafe withUnsafeBytes(of: &nonce) { nonce in
      unsafe library.functions.pointee.EVP_CipherInit_ex(
        context, nil, nil, nil, nonce.baseAddress?.assumingMemoryBound(to: UInt8.self),
        isSealing ? 1 : 0)
    } == 1
  }

  private func update(
    _ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard source.count > 0 else { return true }
    var count: CInt = 0
    return unsafe library.functions.pointee.EVP_CipherUpdate(
      context, target.baseAddress?.assumingMemoryBound(to: UInt8.self), &count,
      source.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(source.count)) == 1
      && count == source.count
  }

  /// Computes the tag, or compares it with the one that was set.
  private func finish() -> Bool {
    // A stream cipher has nothing left to write.
    var (rest, count): (UInt64, CInt) = (0, 0)
    return unsafe withUnsafeMutableBytes(of: &rest) { rest in
      unsafe library.functions.pointee.EVP_CipherFinal_ex(
        context, rest.baseAddress?.assumingMemoryBound(to: UInt8.self), &count)
    } == 1
  }
}

extension AuthenticatedCipher {
  /// The 12 bytes that no two messages under one key have in common.
  ///
  /// ```
  ///  0  3   zero
  ///  3  8   counter, big-endian
  /// 11  1   1 for the last chunk of a stream
  /// ```
  ///
  /// age counts in 11 bytes; 2^64 chunks are more than any file has.
  struct Nonce {
    private var bytes: (UInt64, UInt32)

    /// The nonce of a key that seals one message only.
    static let zero = Nonce(counter: 0, isLast: false)

    init(counter: UInt64, isLast: Bool) {
      bytes = (
        (counter >> 24).bigEndian,
        (UInt32(truncatingIfNeeded: counter) << 8 | (isLast ? 1 : 0)).bigEndian
      )
    }
  }
}
