/// Why one blob did not come.
package struct BlobFailure: Error, Equatable, Sendable {
  /// Why, in the ledger's words.
  package let reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  package let status: Int?
  /// What exactly happened, in words for a person.
  package var explanation: String?
  /// Whether nothing, or next to nothing, came of it, so that each further attempt takes long.
  package var isStall = false
  /// Whether the server's error names the want of a login.
  package var namesLogin = false
  /// Whether the account's owner, logged in, may get it.
  package var wantsLogin: Bool { namesLogin || status == 401 || status == 403 }

  package init(reason: BlobLedger.Reason, status: Int?) {
    self.reason = reason
    self.status = status
  }

  /// Whether trying again later may help.
  package var isTransient: Bool {
    switch reason {
    case .serverError, .rateLimited, .noAnswer: true
    default: false
    }
  }
}

extension BlobFailure {
  /// The reasons there are, by their numbers.
  private static let reasons: [BlobLedger.Reason] = [
    .notFound, .refused, .serverError, .rateLimited, .noAnswer, .hostileRedirect, .tooLarge,
    .unverifiable, .mismatch, .noRoom,
  ]

  /// The failure in four bytes, of which there may be a million; never 0.
  package var packed: UInt32 {
    let reason = Self.reasons.firstIndex(of: reason) ?? 1
    return UInt32(clamping: status ?? 0) & 0xffff | UInt32(reason + 1) << 16
      | (namesLogin ? 1 << 24 : 0)
  }

  /// The failure in four bytes again.
  package init(packed: UInt32) {
    let status = Int(packed & 0xffff)
    self.init(
      reason: Self.reasons[Int(packed >> 16 & 0xff) - 1], status: status == 0 ? nil : status)
    namesLogin = packed >> 24 == 1
  }
}
