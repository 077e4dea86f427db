internal import Archive
internal import Files
internal import Snapshots
internal import SystemPackage
internal import XRPC

extension BlobFailure {
  /// What an error means for the blob; nil if it is about more than that: the archive, or the end
  /// of everything.
  init?(_ error: any Error) {
    switch error {
    case let error as XRPCError: self.init(error)
    case let error as TransportError: self.init(error)
    case BackupError.blobTooLarge(let limit):
      self.init(reason: .tooLarge, status: nil)
      explanation = "longer than \(limit) bytes"
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

extension ListFault {
  /// What an error means for a list of blobs; nil if it is about more than that.
  init?(_ error: any Error) {
    guard let failure = BlobFailure(error) else { return nil }
    switch error {
    case let error as XRPCError:
      self.init(
        reason: error.fault == nil ? failure.reason : .malformed, status: failure.status,
        isTransient: error.isTransient)
    case let error as TransportError:
      self.init(reason: failure.reason, status: nil, isTransient: error.isTransient)
    default: return nil
    }
  }
}
