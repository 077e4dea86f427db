internal import Archive
internal import XRPC

/// Why one blob did not come.
struct BlobFailure: Error, Equatable, Sendable {
  /// Why, in the ledger's words.
  let reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  let status: Int?

  /// What an error means for the blob; nil if it is about more than that: the archive, or the end of everything.
  init?(_ error: any Error) {
    switch error {
    case let error as XRPCError: self.init(error)
    case let error as TransportError: self.init(error)
    case let error as BlobSink.Refusal:
      switch error {
      case .tooLong: self.init(reason: .tooLarge, status: nil)
      }
    case let error as ArchiveError:
      switch error.reason {
      case .contentMismatch, .lengthMismatch: self.init(reason: .mismatch, status: nil)
      default: return nil
      }
    default: return nil
    }
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
      // The reference server's words for a blob that it does not have are "InvalidRequest" and "Blob not found".
      case 400 where error.name == "BlobNotFound" || error.name == "InvalidRequest": .notFound
      default: .refused
      }
    self.init(reason: reason, status: error.status)
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
  }
}
