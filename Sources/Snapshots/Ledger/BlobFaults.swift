internal import IPLD

/// Why one blob could not be fetched.
package struct BlobFailure: Error, Equatable, Sendable {
  /// Why, in the ledger's words.
  package let reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  package let status: Int?
  /// What exactly happened, for people.
  package var explanation: String?
  /// Whether little or nothing arrived, so that each further attempt takes long.
  package var isStall = false
  /// Whether the server's error says that a login is required.
  package var namesLogin = false
  /// Whether the account's owner, logged in, may get it.
  package var wantsLogin: Bool { namesLogin || status == 401 || status == 403 }

  package init(reason: BlobLedger.Reason, status: Int?) {
    (self.reason, self.status) = (reason, status)
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

  /// Reads the failure from its four bytes.
  package init(packed: UInt32) {
    let status = Int(packed & 0xffff)
    self.init(
      reason: Self.reasons[Int(packed >> 16 & 0xff) - 1], status: status == 0 ? nil : status)
    namesLogin = packed >> 24 == 1
  }
}

/// Why a server's list of an account's blobs is incomplete.
///
/// A snapshot with such a list may lack blobs that no record refers to; only the complete list
/// would show which. The next backup requests it again.
package struct ListFault: Equatable, Sendable {
  /// Why, in the ledger's words.
  package var reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  package var status: Int?
  /// Whether asking again later may help.
  package var isTransient: Bool

  /// A fault of these parts.
  package init(reason: BlobLedger.Reason, status: Int?, isTransient: Bool) {
    (self.reason, self.status, self.isTransient) = (reason, status, isTransient)
  }

  /// The message for people.
  package var sentence: String {
    let status = status.map { " (HTTP \($0))" } ?? ""
    let why =
      switch reason {
      case .notFound: "the server does not have one"
      case .malformed: "the server's answer is not a list of blobs"
      case .tooLarge: "it broke off before its end"
      default: reason.sentence
      }
    return "the server's list of blobs is incomplete: \(why)\(status)"
  }
}

/// The blobs that a server says it has of an account, all pages of them.
package struct BlobListing: Sendable {
  /// The blobs, each once.
  package var list: CIDList { known.list }
  /// Entries that are not CIDs.
  package var malformedCount = 0
  /// Why it is incomplete: what went wrong after the blobs that were received.
  package var fault: ListFault?
  /// The error that ``fault`` stands for.
  package var failure: (any Error)?

  package var known: IndexedCIDs

  /// A list of these blobs.
  package init(_ cids: CIDList = [], fault: ListFault? = nil) {
    known = IndexedCIDs(cids)
    self.fault = fault
  }
}
