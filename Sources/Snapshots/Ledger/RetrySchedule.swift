internal import Files

/// Which of the missing blobs are requested again.
///
/// What a server does not have now it will hardly have in an hour. So blobs that are permanently
/// lost are requested once a day, and those with a temporary failure each time, as are those instead
/// of which something else came: that may have been the page of a network that wants a login.
package struct RetrySchedule: Sendable {
  /// The current time; nil if all blobs are requested whatever the time.
  private let now: Moment?
  /// When blobs were last requested without success, if the ledger does not say it.
  private let triedAgain: String?

  /// How long after a request a permanently lost blob is not requested again, in seconds.
  static let pause: Int64 = 86_400

  /// All blobs that are not accepted as lost are requested.
  package static let always = RetrySchedule(now: nil, triedAgain: nil)

  private init(now: Moment?, triedAgain: String?) {
    (self.now, self.triedAgain) = (now, triedAgain)
  }

  /// Blobs that are permanently lost are requested once a day.
  ///
  /// - Parameters:
  ///   - now: When it is, in RFC 3339.
  ///   - triedAgain: When blobs were last requested without success, if that is later than the
  ///     ledger says.
  package static func daily(now: String, triedAgain: String?) -> RetrySchedule {
    RetrySchedule(now: Moment(now), triedAgain: triedAgain)
  }

  /// Whether a blob is requested.
  func isDue(_ entry: BlobLedger.Missing) -> Bool {
    guard entry.accepted == nil else { return false }
    guard let now, entry.reason.isLasting, entry.reason != .mismatch,
      let last = lastTried(entry).flatMap({ Moment($0) })
    else { return true }
    // A time to come is one of a clock that was wrong.
    let passed = now.seconds - last.seconds
    return passed < 0 || passed >= Self.pause
  }

  /// When a blob was last requested without success.
  package func lastTried(_ entry: BlobLedger.Missing) -> String? {
    guard let last = entry.lastTried, entry.accepted == nil,
      let triedAgain, let earlier = Moment(last), let later = Moment(triedAgain),
      earlier.begins(before: later)
    else { return entry.lastTried }
    return triedAgain
  }
}

extension BlobLedger.Reason {
  /// Whether the blob seems to be lost permanently, and not because of a temporary failure.
  ///
  /// Only such blobs are requested less often, and accepted as lost with all others.
  package var isLasting: Bool {
    switch self {
    case .serverError, .rateLimited, .noAnswer, .noRoom, .notTried: false
    default: true
    }
  }
}
