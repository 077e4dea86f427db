internal import Age
package import IPLD

extension AgeError: KnownFault {
  /// What it says of the file: bytes that were changed, or belong to another archive, count as
  /// damaged, so that something else can be tried.
  package var faultKind: FaultKind {
    switch self {
    case .notAnAgeFile, .unsupportedVersion, .malformedHeader, .truncatedHeader, .forgedHeader,
      .damagedChunk, .truncatedPayload, .emptyLastChunk, .noIdentityMatches,
      .notSealedWithPassphrase, .passphraseNeeded:
      .damage
    case .identityFileTooLong, .tooManyRecipients, .workFactorTooHigh: .limit
    case .noCryptoLibrary, .cryptoFailed: .system
    case .malformedArmor, .malformedRecipient, .malformedIdentity, .noIdentity, .noRecipient,
      .emptyPassphrase, .wrongPassphrase:
      .refused
    }
  }
}
