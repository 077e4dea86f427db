internal import CCrypto

/// X25519 (RFC 7748): scalars and points of 32 bytes.
enum X25519 {
  /// How many bytes a scalar, a point and a shared secret have.
  static let length = 32

  /// The point that belongs to a scalar.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func point(of scalar: SecretBytes) throws(AgeError) -> [UInt8] {
    let library = try Libcrypto.open()
    var point = [UInt8](repeating: 0, count: length)
    let isDone = unsafe scalar.withUnsafeBytes { scalar in
      unsafe carpack_x25519_public(
        library.functions, scalar.baseAddress?.assumingMemoryBound(to: UInt8.self), &point)
    }
    guard isDone == 1 else { throw library.failure(to: "compute a public key") }
    return point
  }

  /// The secret that a scalar shares with the owner of a point; nil if it is the all-zero value,
  /// which every scalar makes of a point of low order (section 6.1).
  ///
  /// - Parameter own: the point that belongs to the scalar.
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func sharedSecret(
    of scalar: SecretBytes, own: [UInt8], with point: [UInt8]
  ) throws(AgeError) -> SecretBytes? {
    precondition(scalar.count == length && own.count == length && point.count == length)
    let library = try Libcrypto.open()
    var status: CInt = -1
    let shared = unsafe SecretBytes(count: length) { target in
      status = unsafe scalar.withUnsafeBytes { scalar in
        unsafe carpack_x25519(
          library.functions, scalar.baseAddress?.assumingMemoryBound(to: UInt8.self), own, point,
          target.baseAddress?.assumingMemoryBound(to: UInt8.self))
      }
    }
    guard status >= 0 else { throw library.failure(to: "compute a shared secret") }
    guard status == 1, shared != SecretBytes(copying: zero.span) else {
      library.clearErrors()
      return nil
    }
    return shared
  }

  private static let zero = [UInt8](repeating: 0, count: length)
}
