/// A file key that is wrapped with a passphrase (c2sp.org/age, "The scrypt recipient type").
///
/// ```
/// -> scrypt SALT WORK    16 bytes; log₂ N in decimal digits
/// BODY                   the wrapped file key, 32 bytes
/// ```
///
/// The wrap key is scrypt of the passphrase with r = 8 and p = 1; its salt is the name of the kind
/// followed by SALT.
struct ScryptStanza: Equatable, Sendable {
  static let kind = "scrypt"
  private static let label = Array("age-encryption.org/v1/scrypt".utf8)
  private static let saltLength = 16
  /// More digits than any plausible work factor has.
  private static let maximumDigits = 9

  /// log₂ N.
  let workFactor: Int
  private let salt: [UInt8]
  private let body: [UInt8]

  /// Reads a stanza of this kind.
  ///
  /// - Throws: ``AgeError/malformedHeader(_:offset:)``.
  init(parsing stanza: AgeStanza) throws(AgeError) {
    guard stanza.arguments.count == 2 else {
      throw stanza.malformed("a scrypt stanza has \(stanza.arguments.count) arguments, not 2")
    }
    guard let salt = stanza.decoded(0), salt.count == Self.saltLength else {
      throw stanza.malformed("the salt of a scrypt stanza is not 16 bytes in Base64")
    }
    let digits = stanza.arguments[1]
    guard digits.count <= Self.maximumDigits, digits.first != UInt8(ascii: "0"),
      digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else {
      throw stanza.malformed("the work factor of a scrypt stanza is not a number of 1 or more")
    }
    guard stanza.body.count == WrappedFileKey.length else {
      throw stanza.malformed("the body of a scrypt stanza has \(stanza.body.count) bytes, not 32")
    }
    self.salt = salt
    workFactor = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    body = stanza.body
  }

  /// The file key, or nil if it was wrapped with another passphrase.
  ///
  /// - Throws: ``AgeError/workFactorTooHigh(_:limit:)``, ``AgeError/noCryptoLibrary(_:)``,
  ///   ``AgeError/cryptoFailed(_:)``.
  func unwrap(with passphrase: AgePassphrase) throws(AgeError) -> SecretBytes? {
    guard workFactor <= passphrase.limit else {
      throw .workFactorTooHigh(workFactor, limit: passphrase.limit)
    }
    let wrapKey = try KeyDerivation.scrypt(
      passphrase.secret, salt: Self.label + salt, workFactor: workFactor)
    return try WrappedFileKey.unwrap(body, with: wrapKey)
  }

  /// Appends a stanza that wraps a file key with a passphrase.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func write(
    _ fileKey: SecretBytes, with passphrase: AgePassphrase, to header: inout [UInt8]
  ) throws(AgeError) {
    let salt = try Libcrypto.open().randomBytes(saltLength)
    let wrapKey = try KeyDerivation.scrypt(
      passphrase.secret, salt: label + salt, workFactor: passphrase.workFactor)
    var argument: [UInt8] = []
    StrictBase64.encode(salt.span, to: &argument)
    AgeStanza.write(
      kind, [argument, Array("\(passphrase.workFactor)".utf8)],
      body: try WrappedFileKey.wrap(fileKey, with: wrapKey), to: &header)
  }
}
