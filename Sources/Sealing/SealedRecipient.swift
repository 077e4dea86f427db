package import Age

/// A recipient of a sealed archive.
package enum SealedRecipient: Sendable {
  /// The owner of this recipient's identity.
  case key(AgeRecipient)
  /// Everyone who knows this passphrase.
  case passphrase(AgePassphrase)

  /// The entry for the passphrase in a list.
  package static let passphraseName = "passphrase"

  /// Its name in a list.
  package var name: String {
    switch self {
    case .key(let recipient): recipient.text
    case .passphrase: Self.passphraseName
    }
  }

  var isPassphrase: Bool { if case .passphrase = self { true } else { false } }

  /// An identity, as an age file that this recipient can open.
  func seal(_ identity: AgeIdentity) throws -> [UInt8] {
    try identity.text.withBytes { text in
      switch self {
      case .key(let recipient): try AgeFile.seal(text, for: [recipient])
      case .passphrase(let passphrase): try AgeFile.seal(text, with: passphrase)
      }
    }
  }
}
