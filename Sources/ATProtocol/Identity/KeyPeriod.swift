package import IPLD

/// A time in which one key signed an account's repository.
package struct KeyPeriod: Hashable, Sendable {
  /// The key.
  package let key: VerificationKey
  /// When the directory received the operation that named it; nil if that is not known.
  package let from: UnixTime?
  /// When the directory received the one that named another, or ended the DID; nil if it is still
  /// valid, or that is not known.
  package let until: UnixTime?
  /// Whether it is still valid.
  package let isCurrent: Bool
  /// The operation that named it.
  package let operation: CID

  /// The periods of a history: operations that keep the same key do not begin one.
  static func list(_ spans: [PLCHistory.Span]) -> [KeyPeriod] {
    var periods: [KeyPeriod] = []
    // The key of the span before, which may have had none.
    var previous: VerificationKey?
    for span in spans {
      guard let key = span.operation.signingKey else {
        previous = nil
        continue
      }
      var (from, operation) = (span.from, span.operation.cid)
      if key == previous, let last = periods.popLast() {
        (from, operation) = (last.from, last.operation)
      }
      periods.append(
        KeyPeriod(
          key: key, from: from, until: span.until, isCurrent: span.isCurrent, operation: operation))
      previous = key
    }
    return periods
  }
}
