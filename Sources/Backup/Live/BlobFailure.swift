internal import Archive
internal import SystemPackage
internal import XRPC

/// Why one blob did not come.
struct BlobFailure: Error, Equatable, Sendable {
  /// Why, in the ledger's words.
  let reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  let status: Int?
  /// What exactly happened, in words for a person.
  var explanation: String?
  /// Whether nothing, or next to nothing, came of it, so that each further attempt takes long.
  var isStall = false
  /// Whether the server's error names the want of a login.
  private var namesLogin = false
  /// Whether the account's owner, logged in, may get it.
  var wantsLogin: Bool { namesLogin || status == 401 || status == 403 }

  /// What an error means for the blob; nil if it is about more than that: the archive, or the end
  /// of everything.
  init?(_ error: any Error) {
    switch error {
    case let error as XRPCError: self.init(error)
    case let error as TransportError: self.init(error)
    case let error as ReceivedBlob.TooLong:
      self.init(reason: .tooLarge, status: nil)
      explanation = "longer than \(error.limit) bytes"
    case is ReceivedBlob.OtherContent: self.init(reason: .mismatch, status: nil)
    case let error as ArchiveError:
      switch error.reason {
      case .contentMismatch, .lengthMismatch: self.init(reason: .mismatch, status: nil)
      case .system(_, let code) where Self.isLackOfRoom(code):
        self.init(reason: .noRoom, status: nil)
      default: return nil
      }
    case BackupError.system(_, let code) where Self.isLackOfRoom(code):
      self.init(reason: .noRoom, status: nil)
    default: return nil
    }
  }

  /// Whether a smaller blob may find room where this one did not.
  private static func isLackOfRoom(_ code: CInt) -> Bool {
    [Errno.noSpace, .diskQuotaExceeded, .fileTooLarge].contains(Errno(rawValue: code))
  }

  init(reason: BlobLedger.Reason, status: Int?) {
    self.reason = reason
    self.status = status
  }

  /// Whether trying again later may help.
  var isTransient: Bool {
    switch reason {
    case .serverError, .rateLimited, .noAnswer: true
    default: false
    }
  }

  private init(_ error: XRPCError) {
    let reason: BlobLedger.Reason =
      switch error.status {
      case 429: .rateLimited
      case 500...: .serverError
      case 404, 410: .notFound
      // The reference server's words for a blob that it does not have are "InvalidRequest" and
      // "Blob not found".
      case 400 where error.name == "BlobNotFound" || error.name == "InvalidRequest": .notFound
      default: .refused
      }
    self.init(reason: reason, status: error.status)
    namesLogin = ["AuthMissing", "AuthRequired", "RepoDeactivated"].contains(error.name)
  }

  private init(_ error: TransportError) {
    let reason: BlobLedger.Reason =
      switch error.reason {
      case .refusedAddress, .refusedRedirect, .tooManyRedirects, .unusableURL: .hostileRedirect
      case .tooLong: .tooLarge
      case .overloaded: .rateLimited
      default: .noAnswer
      }
    self.init(reason: reason, status: nil)
    explanation = error.what
    switch error.reason {
    case .stalled, .tooSlow: isStall = true
    default: break
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
  var packed: UInt32 {
    let reason = Self.reasons.firstIndex(of: reason) ?? 1
    return UInt32(clamping: status ?? 0) & 0xffff | UInt32(reason + 1) << 16
      | (namesLogin ? 1 << 24 : 0)
  }

  /// The failure in four bytes again.
  init(packed: UInt32) {
    let status = Int(packed & 0xffff)
    self.init(
      reason: Self.reasons[Int(packed >> 16 & 0xff) - 1], status: status == 0 ? nil : status)
    namesLogin = packed >> 24 == 1
  }
}
