/// A private key that opens what was sealed for its ``recipient``: a scalar of X25519, written
/// `AGE-SECRET-KEY-1…` in Bech32 (c2sp.org/age, "The X25519 recipient type").
///
/// Describing it gives its recipient.
package struct AgeIdentity: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// How many characters the text has.
  package static let textLength = Bech32.Form.identity.length

  /// The scalar, 32 bytes.
  let scalar: SecretBytes
  /// The recipient for which to encrypt what this identity opens.
  package let recipient: AgeRecipient

  private init(scalar: SecretBytes) throws(AgeError) {
    self.scalar = scalar
    recipient = AgeRecipient(point: try X25519.point(of: scalar))
  }

  /// Reads an identity from its text, in upper case and with nothing around it.
  ///
  /// The caller has to wipe the text.
  ///
  /// - Throws: ``AgeError/malformedIdentity(_:line:)``, ``AgeError/noCryptoLibrary(_:)``,
  ///   ``AgeError/cryptoFailed(_:)``.
  package init(parsing text: Span<UInt8>) throws(AgeError) {
    let scalar: SecretBytes
    do throws(Bech32.Fault) {
      scalar = try unsafe SecretBytes(count: Bech32.byteCount) { (target) throws(Bech32.Fault) in
        try unsafe Bech32.decode(text, form: .identity, into: target)
      }
    } catch {
      throw .malformedIdentity(Self.explain(error, of: text), line: nil)
    }
    try self.init(scalar: scalar)
  }

  /// Reads an identity from its text, as ``init(parsing:)-(Span<UInt8>)`` does.
  package init(parsing text: SecretBytes) throws(AgeError) {
    self = try text.withBytes { (text) throws(AgeError) in try AgeIdentity(parsing: text) }
  }

  /// A new identity from libcrypto's random numbers.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package static func generate() throws(AgeError) -> AgeIdentity {
    try AgeIdentity(scalar: .random(count: X25519.length))
  }

  /// The text: 74 characters, `AGE-SECRET-KEY-1…`.
  package var text: SecretBytes {
    unsafe SecretBytes(count: Self.textLength) { target in
      scalar.withBytes { unsafe Bech32.encode($0, form: .identity, into: target) }
    }
  }

  /// 32 bytes that only the identity's owner knows: HKDF of its scalar, without salt.
  ///
  /// - Parameter purpose: The info: what they are for.
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package func secret(for purpose: String) throws(AgeError) -> SecretBytes {
    try KeyDerivation.hkdf(scalar, salt: [], info: Array(purpose.utf8))
  }

  /// The recipient's text.
  package var description: String { recipient.text }
  /// The recipient.
  package var customMirror: Mirror { Mirror(self, children: ["recipient": recipient]) }

  /// Describes what is wrong, without any character of the text, which may be a secret.
  private static func explain(_ fault: Bech32.Fault, of text: Span<UInt8>) -> String {
    switch fault {
    case .otherBeginning where text.begins(with: "age1"):
      "it is a recipient (public key), which cannot decrypt"
    case .otherBeginning where text.begins(with: "AGE-SECRET-KEY-PQ-1"):
      "it is a post-quantum identity, which is not supported"
    case .otherBeginning where text.begins(with: "AGE-PLUGIN-"):
      "it is an identity of a plugin, which is not supported"
    case .otherBeginning: "it does not begin with AGE-SECRET-KEY-1"
    case .length: "it has \(text.count) characters, not \(textLength)"
    case .character: "a character is not upper-case Bech32"
    case .padding: "its last bits are not zero"
    case .checksum: "its checksum does not match: a character is wrong"
    }
  }
}
