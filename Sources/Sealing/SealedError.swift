internal import Age
internal import Archive
package import IPLD

/// Why a sealed archive cannot be opened or written.
package indirect enum SealedError: StorageLayerError, KnownFault, Equatable, Sendable,
  CustomStringConvertible
{
  /// No key was given.
  case noKey
  /// None of the keys that were given opens it.
  case wrongKey
  /// To try the archive's passphrase takes more memory and time than was agreed to; with which work
  /// factor.
  case costlyPassphrase(workFactor: Int)
  /// None of the frames that hold the archive's identity can be read.
  case noKeySlot
  /// The content of the key frames is malformed.
  case malformedSlot(String)
  /// The key frames have no room for another recipient.
  case tooManyRecipients
  /// The archive is already sealed to that recipient.
  case knownRecipient(String)
  /// The archive is not sealed to that recipient.
  case unknownRecipient(String)
  /// The last recipient of the archive was to be removed.
  case lastRecipient
  /// The archive is to be sealed to others, and its writer is not a recipient.
  case noOwnRecipient
  /// There is no memory for secret bytes.
  case noMemory(String)
  /// The file is not a sealed archive.
  case notSealed
  /// The file is sealed already.
  case isSealed
  /// One of these, of the file with this path.
  case inFile(String, SealedError)

  /// What it says of the archive.
  package var faultKind: FaultKind {
    switch self {
    case .noKeySlot, .malformedSlot: .damage
    case .noMemory: .system
    case .costlyPassphrase: .limit
    case .inFile(_, let cause): cause.faultKind
    default: .refused
    }
  }

  package func of(_ file: String) -> SealedError {
    if case .inFile = self { self } else { .inFile(file, self) }
  }

  /// The error without the path of a file.
  package var cause: SealedError { if case .inFile(_, let cause) = self { cause } else { self } }

  /// The message for people: one sentence, lower case, without a full stop.
  package var description: String {
    switch self {
    case .noKey: "the archive is sealed, and no key was given"
    case .wrongKey: "the archive is sealed, and none of the keys that were given opens it"
    case .costlyPassphrase(let workFactor):
      "the archive is sealed, and to try its passphrase takes \(AgePassphrase.cost(ofWorkFactor: workFactor))"
    case .noKeySlot:
      "every frame that holds the key of the sealed archive is damaged, so nothing can open it"
    case .malformedSlot(let what): "the key frame of the sealed archive is malformed: \(what)"
    case .tooManyRecipients: "the archive's key frames have no room for another recipient"
    case .knownRecipient(let text): "the archive is sealed to \(text) already"
    case .unknownRecipient(let text): "the archive is not sealed to \(text)"
    case .lastRecipient: "no recipient would be left, so no one could open the archive"
    case .noOwnRecipient:
      "the archive is to be sealed to its owner, but the program that writes it has no recipient of its own"
    case .noMemory(let why): "could not allocate memory for secrets: \(why)"
    case .notSealed: "the archive is not sealed"
    case .isSealed: "the archive is sealed already"
    case .inFile(let file, let cause): "\(file): \(cause)"
    }
  }
}
