/// A file key that is wrapped for one ``AgeRecipient`` (c2sp.org/age, "The X25519 recipient type").
///
/// ```
/// -> X25519 SHARE     a point that was made for this file, 32 bytes
/// BODY                the wrapped file key, 32 bytes
/// ```
///
/// The wrap key is HKDF of the secret that the share and the recipient have in common; its salt is
/// both points, its info names the kind.
struct X25519Stanza: Equatable, Sendable {
  static let kind = "X25519"
  private static let info = Array("age-encryption.org/v1/X25519".utf8)
  /// How many bytes the stanza takes in a header.
  static let length =
    "-> X25519 ".utf8.count + StrictBase64.length(of: X25519.length) + 1
    + StrictBase64.length(of: WrappedFileKey.length) + 1

  private let share: [UInt8]
  private let body: [UInt8]
  private let stanza: AgeStanza

  /// Reads a stanza of this kind.
  ///
  /// - Throws: ``AgeError/malformedHeader(_:offset:)``.
  init(parsing stanza: AgeStanza) throws(AgeError) {
    guard stanza.arguments.count == 1 else {
      throw stanza.malformed("an X25519 stanza has \(stanza.arguments.count) arguments, not 1")
    }
    guard let share = stanza.decoded(0), share.count == X25519.length else {
      throw stanza.malformed("the share of an X25519 stanza is not 32 bytes in Base64")
    }
    // Before it is decrypted: a longer body can be made to open with several wrap keys, which lets
    // its sender find out which of them the reader has (partitioning oracle).
    guard stanza.body.count == WrappedFileKey.length else {
      throw stanza.malformed("the body of an X25519 stanza has \(stanza.body.count) bytes, not 32")
    }
    self.share = share
    body = stanza.body
    self.stanza = stanza
  }

  /// The file key, or nil if it was wrapped for another.
  ///
  /// - Throws: ``AgeError/malformedHeader(_:offset:)`` if the share is of low order,
  ///   ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  func unwrap(with identity: AgeIdentity) throws(AgeError) -> SecretBytes? {
    let own = identity.recipient.point
    guard let shared = try X25519.sharedSecret(of: identity.scalar, own: own, with: share) else {
      throw stanza.malformed("the share of an X25519 stanza is a point of low order")
    }
    let wrapKey = try KeyDerivation.hkdf(shared, salt: share + own, info: Self.info)
    return try WrappedFileKey.unwrap(body, with: wrapKey)
  }

  /// Appends a stanza that wraps a file key for a recipient.
  ///
  /// - Throws: ``AgeError/malformedRecipient(_:)`` if its point is of low order,
  ///   ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  static func write(
    _ fileKey: SecretBytes, for recipient: AgeRecipient, to header: inout [UInt8]
  ) throws(AgeError) {
    let ephemeral = try SecretBytes.random(count: X25519.length)
    let share = try X25519.point(of: ephemeral)
    let shared = try X25519.sharedSecret(of: ephemeral, own: share, with: recipient.point)
    guard let shared else { throw .malformedRecipient("its point is of low order") }
    let wrapKey = try KeyDerivation.hkdf(shared, salt: share + recipient.point, info: info)
    var argument: [UInt8] = []
    StrictBase64.encode(share.span, to: &argument)
    AgeStanza.write(
      kind, [argument], body: try WrappedFileKey.wrap(fileKey, with: wrapKey), to: &header)
  }
}
