/// The header of an age file: its file key, wrapped for each recipient (c2sp.org/age, "Header").
///
/// ```
/// "age-encryption.org/v1\n"
/// stanzas                         1 or more
/// "--- " 43 characters "\n"       HMAC-SHA-256 of all before the space, in Base64
/// ```
///
/// The HMAC's key is HKDF of the file key with the info `header`, so that only one who has opened
/// the file can tell whether its header was changed; ``unwrap(with:)-([AgeIdentity])`` does so
/// before it returns the file key. After the header come the nonce and the chunks of the
/// ``AgePayload``.
package struct AgeHeader: Sendable {
  /// The most bytes that a header may have; as many recipients as there may be take 50 KiB.
  package static let maximumLength = 1 << 16
  /// The most stanzas that a header may have, because each costs the reader a computation.
  package static let maximumStanzas = 512

  static let beginning = Array("age-encryption.org/".utf8)
  static let firstLine = beginning + Array("v1\n".utf8)
  static let mark = Array("---".utf8)
  /// How many bytes the last line has.
  private static let lastLineLength =
    mark.count + 1 + StrictBase64.length(of: KeyDerivation.length) + 1
  private static let info = Array("header".utf8)

  /// How many bytes the header has: after it lies the nonce of the payload.
  package let length: Int
  /// The input of the HMAC: everything up to and including `---`.
  let authenticated: [UInt8]
  /// The HMAC.
  let code: [UInt8]
  /// The stanzas for keys, in order; unknown kinds are left out.
  let keyStanzas: [X25519Stanza]
  /// The stanza for a passphrase, which is the only one.
  let passphraseStanza: ScryptStanza?

  /// How much work it is to try a passphrase, log₂ N of scrypt, where a passphrase opens the file,
  /// and nothing else; nil where keys do.
  package var workFactor: Int? { passphraseStanza?.workFactor }

  /// How many bytes the header has for a number of recipients: 168 for one.
  package static func length(recipients count: Int) -> Int {
    firstLine.count + count * X25519Stanza.length + lastLineLength
  }

  /// Whether bytes begin as an age file does, of whatever version.
  package static func isBeginning(_ bytes: Span<UInt8>) -> Bool {
    bytes.count >= beginning.count && beginning.indices.allSatisfy { bytes[$0] == beginning[$0] }
  }

  // MARK: - Opening

  /// The file key, by the first identity that opens a stanza.
  ///
  /// - Throws: ``AgeError/noIdentityMatches``, ``AgeError/passphraseNeeded(workFactor:)``,
  ///   ``AgeError/forgedHeader``, ``AgeError/malformedHeader(_:offset:)`` if a share is of low
  ///   order, ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package func unwrap(with identities: [AgeIdentity]) throws(AgeError) -> SecretBytes {
    if let workFactor { throw .passphraseNeeded(workFactor: workFactor) }
    for stanza in keyStanzas {
      for identity in identities {
        if let fileKey = try stanza.unwrap(with: identity) { return try verified(fileKey) }
      }
    }
    throw .noIdentityMatches
  }

  /// The file key, by a passphrase.
  ///
  /// - Throws: ``AgeError/wrongPassphrase``, ``AgeError/notSealedWithPassphrase``,
  ///   ``AgeError/workFactorTooHigh(_:limit:)``, ``AgeError/forgedHeader``,
  ///   ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package func unwrap(with passphrase: AgePassphrase) throws(AgeError) -> SecretBytes {
    guard let passphraseStanza else { throw .notSealedWithPassphrase }
    guard let fileKey = try passphraseStanza.unwrap(with: passphrase) else {
      throw .wrongPassphrase
    }
    return try verified(fileKey)
  }

  private func verified(_ fileKey: SecretBytes) throws(AgeError) -> SecretBytes {
    let expected = try Self.code(of: authenticated, fileKey: fileKey)
    guard expected.span.equalsInConstantTime(code.span) else { throw .forgedHeader }
    return fileKey
  }

  // MARK: - Making

  /// A header for recipients, each of whom can open the file, and its file key: a new one, unless
  /// one is given.
  ///
  /// The header has ``length(recipients:)`` bytes. A recipient who opens the file learns the file
  /// key, and how many others there are.
  ///
  /// - Throws: ``AgeError/noRecipient``, ``AgeError/tooManyRecipients(limit:)``,
  ///   ``AgeError/malformedRecipient(_:)`` if a recipient's point is of low order,
  ///   ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package static func make(
    for recipients: [AgeRecipient], fileKey: SecretBytes? = nil
  ) throws(AgeError) -> (bytes: [UInt8], fileKey: SecretBytes) {
    guard !recipients.isEmpty else { throw .noRecipient }
    guard recipients.count <= maximumStanzas else {
      throw .tooManyRecipients(limit: maximumStanzas)
    }
    return try make(fileKey) { (fileKey, header) throws(AgeError) in
      for recipient in recipients {
        try X25519Stanza.write(fileKey, for: recipient, to: &header)
      }
    }
  }

  /// A header for a passphrase, and its file key.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package static func make(
    for passphrase: AgePassphrase
  ) throws(AgeError) -> (bytes: [UInt8], fileKey: SecretBytes) {
    try make(nil) { (fileKey, header) throws(AgeError) in
      try ScryptStanza.write(fileKey, with: passphrase, to: &header)
    }
  }

  private static func make(
    _ known: SecretBytes?,
    writingStanzas write: (SecretBytes, inout [UInt8]) throws(AgeError) -> Void
  ) throws(AgeError) -> (bytes: [UInt8], fileKey: SecretBytes) {
    let fileKey: SecretBytes
    if let known {
      fileKey = known
    } else {
      fileKey = try SecretBytes.random(count: WrappedFileKey.fileKeyLength)
    }
    var header = firstLine
    try write(fileKey, &header)
    header += mark
    let code = try code(of: header, fileKey: fileKey)
    header.append(UInt8(ascii: " "))
    StrictBase64.encode(code.span, to: &header)
    header.append(UInt8(ascii: "\n"))
    return (header, fileKey)
  }

  private static func code(
    of authenticated: [UInt8], fileKey: SecretBytes
  ) throws(AgeError) -> [UInt8] {
    let key = try KeyDerivation.hkdf(fileKey, salt: [], info: info)
    return try KeyDerivation.hmac(authenticated, key: key)
  }
}
