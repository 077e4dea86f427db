internal import XRPC

/// Why a server's list of an account's blobs is not whole.
///
/// A snapshot with one may lack blobs that no record refers to, and nobody knows which. The next
/// backup asks for the list again.
public struct ListFault: Equatable, Sendable {
  /// Why, in the ledger's words.
  public var reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  public var status: Int?
  /// Whether asking again later may help.
  public var isTransient: Bool

  /// A fault of these parts.
  public init(reason: BlobLedger.Reason, status: Int?, isTransient: Bool) {
    self.reason = reason
    self.status = status
    self.isTransient = isTransient
  }

  /// What a person reads.
  public var sentence: String {
    let status = status.map { " (HTTP \($0))" } ?? ""
    let why =
      switch reason {
      case .notFound: "the server does not know it"
      case .malformed: "the server's answer is not a list of blobs"
      default: reason.sentence
      }
    return "the server's list of blobs is not whole: \(why)\(status)"
  }
}

extension ListFault {
  /// What an error means for the list; nil if it is about more than that.
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
