internal import Age

extension AgeError {
  /// Whether it says that bytes were changed, or belong to another archive: so that something else
  /// can be tried, and the bytes count as damaged.
  var isAboutTheFile: Bool {
    switch self {
    case .notAnAgeFile, .unsupportedVersion, .malformedHeader, .truncatedHeader, .forgedHeader,
      .damagedChunk, .truncatedPayload, .emptyLastChunk, .noIdentityMatches,
      .notSealedWithPassphrase, .passphraseNeeded:
      true
    default: false
    }
  }
}
