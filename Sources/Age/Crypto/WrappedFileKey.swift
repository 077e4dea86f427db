/// A file key as a stanza has it in its body: sealed with ChaCha20-Poly1305 under a wrap key that
/// seals nothing else, and therefore with a nonce of zeros.
///
/// ```
///  0  16  file key, encrypted
/// 16  16  tag
/// ```
enum WrappedFileKey {
  /// How many bytes a file key has.
  static let fileKeyLength = 16
  /// How many bytes a wrapped one has.
  static let length = fileKeyLength + AuthenticatedCipher.tagLength

  /// Wraps a file key.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func wrap(_ fileKey: SecretBytes, with wrapKey: SecretBytes) throws(AgeError) -> [UInt8] {
    var cipher = try AuthenticatedCipher(key: wrapKey)
    var body = [UInt8](repeating: 0, count: length)
    var target = body.mutableSpan
    try unsafe target.withUnsafeMutableBytes { (target) throws(AgeError) in
      try unsafe fileKey.withUnsafeBytes { (fileKey) throws(AgeError) in
        try unsafe cipher.seal(fileKey, nonce: .zero, into: target)
      }
    }
    return body
  }

  /// The file key, or nil if another wrap key wrapped it.
  ///
  /// - Precondition: `body` has ``length`` bytes.
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func unwrap(_ body: [UInt8], with wrapKey: SecretBytes) throws(AgeError) -> SecretBytes? {
    precondition(body.count == length)
    var cipher = try AuthenticatedCipher(key: wrapKey)
    var isGenuine = false
    let fileKey = try unsafe SecretBytes(count: fileKeyLength) { (target) throws(AgeError) in
      isGenuine = try unsafe body.span.withUnsafeBytes { (body) throws(AgeError) in
        try unsafe cipher.open(body, nonce: .zero, into: target)
      }
    }
    return isGenuine ? fileKey : nil
  }
}
