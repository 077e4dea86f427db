package import Age
package import Sealing
package import Terminal

extension SealedError: FormatError {
  package var explanation: Explanation {
    switch self {
    case .noKey:
      (
        .loginRefused,
        "name a file with an age identity: --age-identity FILE, or CARPACK_AGE_IDENTITY"
      )
    case .wrongKey: (.loginRefused, nil)
    case .costlyPassphrase:
      (.loginRefused, "run it on a terminal, which asks first, or name an age identity")
    case .noKeySlot, .malformedSlot: (.damaged, nil)
    case .tooManyRecipients, .knownRecipient, .unknownRecipient, .lastRecipient:
      (.usage, "\"carpack key list\" lists who can open it")
    case .noOwnRecipient:
      (.usage, "start the worker with --recipient, and with the identity that opens it")
    case .noMemory: (.failure, nil)
    case .notSealed: (.usage, "\"carpack seal\" seals it")
    case .isSealed: (.usage, "\"carpack key\" lists and changes who can open it")
    case .inFile(_, let cause): cause.explanation
    }
  }
}

extension AgeError: Explained {
  package var explanation: Explanation {
    switch self {
    case .noIdentityMatches, .passphraseNeeded, .wrongPassphrase, .notSealedWithPassphrase,
      .workFactorTooHigh:
      (.loginRefused, nil)
    case .malformedRecipient, .malformedIdentity, .noIdentity, .identityFileTooLong, .noRecipient,
      .tooManyRecipients, .emptyPassphrase:
      (.usage, nil)
    case .noCryptoLibrary: (.failure, "install OpenSSL: libssl3 on Debian, openssl@3 in Homebrew")
    case .cryptoFailed: (.failure, nil)
    default: (.damaged, nil)
    }
  }
}
