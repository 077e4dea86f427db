internal import Snapshots
internal import XRPC

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
