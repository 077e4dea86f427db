internal import Files

/// Which of the blobs that are missing are asked for again.
///
/// What a server does not have today it will hardly have in an hour. So what is lost for good is
/// asked for once a day, and what failed for a reason that may pass each time.
package struct RetrySchedule: Sendable {
  /// When it is; nil if all blobs are asked for, however late it is.
  private let now: Moment?
  /// When blobs were last asked for in vain, if the ledger does not say it.
  private let triedAgain: String?

  /// How long a blob that is lost for good is left alone, in seconds.
  static let pause: Int64 = 86_400

  /// All that is not accepted as lost is asked for.
  package static let always = RetrySchedule(now: nil, triedAgain: nil)

  private init(now: Moment?, triedAgain: String?) {
    (self.now, self.triedAgain) = (now, triedAgain)
  }

  /// What is lost for good is asked for once a day.
  ///
  /// - Parameters:
  ///   - now: When it is, in RFC 3339.
  ///   - triedAgain: When blobs were last asked for in vain, if that is later than the ledger says.
  package static func daily(now: String, triedAgain: String?) -> RetrySchedule {
    RetrySchedule(now: Moment(now), triedAgain: triedAgain)
  }

  /// Whether a blob is asked for.
  func isDue(_ entry: BlobLedger.Missing) -> Bool {
    guard entry.accepted == nil else { return false }
    guard let now, entry.reason.isLasting, let last = lastTried(entry).flatMap({ Moment($0) })
    else { return true }
    // A time to come is one of a clock that was wrong.
    let passed = now.seconds - last.seconds
    return passed < 0 || passed >= Self.pause
  }

  /// When a blob was last asked for in vain.
  package func lastTried(_ entry: BlobLedger.Missing) -> String? {
    guard let last = entry.lastTried, entry.accepted == nil,
      let triedAgain, let earlier = Moment(last), let later = Moment(triedAgain),
      earlier.begins(before: later)
    else { return entry.lastTried }
    return triedAgain
  }
}

extension BlobLedger.Reason {
  /// Whether the blob is lost for good, as far as can be told, and not for a reason that may pass.
  ///
  /// Only such blobs are asked for less often, and accepted as lost with all others.
  package var isLasting: Bool {
    switch self {
    case .serverError, .rateLimited, .noAnswer, .noRoom, .notTried: false
    default: true
    }
  }
}
