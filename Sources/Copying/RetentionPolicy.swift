internal import ATProtocol
package import Files
internal import Snapshots

/// Which snapshots of an account are kept, by when they were made.
///
/// A snapshot is kept if any rule keeps it. Days, weeks (from Monday), months and years are those
/// of UTC; only such as have a snapshot are counted, from the newest back, and of each the newest
/// snapshot is the one that is kept.
///
/// A snapshot that lacks records or tree nodes does not count as one that is kept: the rules choose
/// among the complete ones, if there are any, and the newest of these is kept in any case.
///
/// Whatever the rules say, the snapshot that was added last and the one with the latest revision
/// are kept, because the verbs use them by default; and so is every snapshot whose time is unknown,
/// or after which the account's history does not go forward.
package struct RetentionPolicy: Equatable, Sendable {
  /// Why a snapshot is kept.
  package enum Reason: String, CaseIterable, Sendable {
    /// It is the last in the file, or has the latest revision.
    case newest
    /// It is one of the last so many.
    case last
    /// It is the newest of its day.
    case daily
    /// It is the newest of its week.
    case weekly
    /// It is the newest of its month.
    case monthly
    /// It is the newest of its year.
    case yearly
    /// Those that are kept otherwise lack records or tree nodes.
    case newestComplete = "newest complete"
    /// When it was made cannot be read.
    case undated
    /// It is of an account that was not chosen.
    case otherAccount = "other account"
    /// The next one has an older revision, or is another commit of the same: it may hold more.
    case beforeDisruption = "before a rollback or fork"
    /// It says that a rollback or fork is accepted.
    case acceptance = "accepts a rollback or fork"
    /// Only others were named to be forgotten.
    case notNamed = "not named"
  }

  /// How many are kept whenever they were made.
  package var last: Int
  /// For how many days one is kept.
  package var daily: Int
  /// For how many weeks one is kept.
  package var weekly: Int
  /// For how many months one is kept.
  package var monthly: Int
  /// For how many years one is kept.
  package var yearly: Int
  /// Whether everything is kept but what is named.
  package var keepsAll = false

  /// A policy that keeps everything but what is named.
  package static var everything: RetentionPolicy {
    var policy = RetentionPolicy()
    policy.keepsAll = true
    return policy
  }

  /// A policy; without any number it keeps the newest only.
  package init(last: Int = 0, daily: Int = 0, weekly: Int = 0, monthly: Int = 0, yearly: Int = 0) {
    (self.last, self.daily, self.weekly, self.monthly) = (last, daily, weekly, monthly)
    self.yearly = yearly
  }

  /// Why each of an account's snapshots is kept; no reason for those that are forgotten.
  ///
  /// - Parameters:
  ///   - moments: when they were made, in the order of the file; nil where that cannot be read.
  ///   - complete: whether each has all its records and tree nodes; empty if all have.
  package func reasons(_ moments: [Moment?], complete: [Bool] = []) -> [Set<Reason>] {
    var reasons = [Set<Reason>](repeating: [], count: moments.count)
    if let newest = moments.indices.last { reasons[newest].insert(.newest) }
    if keepsAll { for index in moments.indices { reasons[index].insert(.notNamed) } }
    for index in moments.indices where moments[index] == nil { reasons[index].insert(.undated) }
    let newestComplete = complete.lastIndex(of: true)
    let dated = moments.indices
      .filter { moments[$0] != nil && (newestComplete == nil || complete[$0]) }
      .sorted { Moment.areInOrder((moments[$1], $1), (moments[$0], $0)) }
    for index in dated.prefix(max(last, 0)) { reasons[index].insert(.last) }
    // By the number of a day since the beginning of 1970, which was a Thursday.
    let rules: [(Reason, Int, (Int64) -> Int64)] = [
      (.daily, daily, { $0 }), (.weekly, weekly, { CalendarDay.floor($0 + 3, 7) }),
      (.monthly, monthly, Self.month), (.yearly, yearly, { CalendarDay.floor(Self.month($0), 12) }),
    ]
    for (reason, count, period) in rules where count > 0 {
      var left = count
      var latest: Int64?
      for index in dated {
        guard left > 0, let moment = moments[index] else { break }
        let current = period(CalendarDay.floor(moment.seconds, 86_400))
        guard current != latest else { continue }
        latest = current
        reasons[index].insert(reason)
        left -= 1
      }
    }
    if let newestComplete,
      !moments.indices.contains(where: { complete[$0] && !reasons[$0].isEmpty })
    {
      reasons[newestComplete].insert(.newestComplete)
    }
    return reasons
  }

  /// The months from January of the year 0 to that of a day.
  private static func month(_ day: Int64) -> Int64 {
    let date = CalendarDay(number: day).date
    return date.year * 12 + date.month - 1
  }
}
