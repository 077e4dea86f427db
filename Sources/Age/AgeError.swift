/// Why something was not encrypted or decrypted.
///
/// No case and no description holds a secret, or bytes of one.
package enum AgeError: Error, Equatable, Sendable, CustomStringConvertible {
  // Bytes that are not what the format says.

  /// The bytes do not begin as an age file does.
  case notAnAgeFile
  /// The first line names another version of the format than v1.
  case unsupportedVersion
  /// The header is malformed: what is wrong, at which byte.
  case malformedHeader(String, offset: Int)
  /// The bytes end within the header, or within the nonce that follows it.
  case truncatedHeader
  /// The header's HMAC does not belong to the header.
  case forgedHeader
  /// A chunk of the payload was changed, moved or cut off: its number, from 0.
  case damagedChunk(UInt64)
  /// The payload ends within its first bytes or within the tag of a chunk.
  case truncatedPayload
  /// The payload's last chunk is empty, and not the only one.
  case emptyLastChunk
  /// The armor is malformed: what is wrong, in which line, from 1.
  case malformedArmor(String, line: Int)

  // Keys.

  /// The text is not a recipient, and why.
  case malformedRecipient(String)
  /// The text is not an identity, and why; in which line, if it is of a file.
  case malformedIdentity(String, line: Int?)
  /// The identity file holds no identity.
  case noIdentity
  /// The identity file is longer than the limit.
  case identityFileTooLong(limit: Int)
  /// A file is to be encrypted, but no recipient was given.
  case noRecipient
  /// A file is to be encrypted for more recipients than its header may name.
  case tooManyRecipients(limit: Int)
  /// The passphrase is empty.
  case emptyPassphrase

  // Opening.

  /// The file was not encrypted for any of the identities.
  case noIdentityMatches
  /// The file is encrypted with a passphrase, but none was given; with which work factor.
  case passphraseNeeded(workFactor: Int)
  /// A passphrase was given, but the file is encrypted for keys.
  case notSealedWithPassphrase
  /// The passphrase is wrong, or its stanza was changed.
  case wrongPassphrase
  /// The file asks for more work to try a passphrase than the limit allows: both are log₂ N.
  case workFactorTooHigh(Int, limit: Int)

  // The machine.

  /// libcrypto cannot be used, and why.
  case noCryptoLibrary(String)
  /// libcrypto failed at this, for lack of memory or entropy.
  case cryptoFailed(String)

  /// The message for people: one sentence, lower case, without a full stop.
  package var description: String {
    switch self {
    case .notAnAgeFile: "this is not an age file"
    case .unsupportedVersion: "the age file is not of version v1, the only one supported"
    case .malformedHeader(let what, let offset):
      "the header of the age file is malformed: \(what), at byte \(offset)"
    case .truncatedHeader: "the age file ends within its header"
    case .forgedHeader: "the header of the age file was changed: its HMAC does not match"
    case .damagedChunk(let index): "the encrypted content is damaged in chunk \(index)"
    case .truncatedPayload: "the encrypted content is truncated"
    case .emptyLastChunk: "the last chunk of the encrypted content is empty"
    case .malformedArmor(let what, let line):
      "the armor of the age file is malformed: \(what), in line \(line)"
    case .malformedRecipient(let what): "this is not an age recipient: \(what)"
    case .malformedIdentity(let what, nil): "this is not an age identity: \(what)"
    case .malformedIdentity(let what, let line?):
      "line \(line) of the identity file is not an age identity: \(what)"
    case .noIdentity: "the identity file holds no identity"
    case .identityFileTooLong(let limit): "the identity file has more than \(limit) bytes"
    case .noRecipient: "there is no recipient to encrypt for"
    case .tooManyRecipients(let limit): "there are more than \(limit) recipients"
    case .emptyPassphrase: "the passphrase is empty"
    case .noIdentityMatches: "none of the keys opens it"
    case .passphraseNeeded: "it is encrypted with a passphrase, but none was given"
    case .notSealedWithPassphrase: "it is encrypted for keys, but a passphrase was given"
    case .wrongPassphrase: "it is encrypted with another passphrase"
    case .workFactorTooHigh(let factor, let limit):
      "its scrypt work factor is \(factor); the limit is \(limit)"
    case .noCryptoLibrary(let reason): "libcrypto cannot be used: \(reason)"
    case .cryptoFailed(let operation): "libcrypto failed to \(operation)"
    }
  }
}
