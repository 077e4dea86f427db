package import ATProtocol
package import Files

/// Which snapshots of an account are kept, by when they were made.
///
/// A snapshot is kept if any rule keeps it. Days, weeks (from Monday), months and years are those
/// of UTC; only such as have a snapshot are counted, from the newest back, and of each the newest
/// snapshot is the one that is kept.
///
/// A snapshot that lacks records or tree nodes takes no place of a rule: the rules choose among the
/// complete ones, if there are any, and the newest of these is kept in any case. Nor does one whose
/// time is wrong (``SnapshotTimes``), unless all are. Of the last n they get the places that are
/// left, so that nothing goes where there are no more than n.
///
/// Whatever the rules say, the snapshot that was added last and the one with the latest revision
/// are kept, because the verbs use them by default; and so is every snapshot whose time is unknown,
/// or after which the account's history does not go forward.
package struct RetentionPolicy: Equatable, Sendable {
  /// Why a snapshot is kept.
  package enum Reason: String, CaseIterable, Sendable {
    /// It is the last in the file, or has the latest revision.
    case newest
    /// It is one of the last n.
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
  /// What time it is, after which no snapshot was made; nil if that is not known.
  package var now: Moment?
  /// Whether everything is kept except what is named.
  private let keepsAll: Bool

  /// A policy that keeps everything except what is named.
  package static let everything = RetentionPolicy(keepsAll: true)

  /// A policy; without any number it keeps the newest only.
  package init(
    last: Int = 0, daily: Int = 0, weekly: Int = 0, monthly: Int = 0, yearly: Int = 0,
    keepsAll: Bool = false, now: Moment? = nil
  ) {
    (self.last, self.daily, self.weekly, self.monthly) = (last, daily, weekly, monthly)
    (self.yearly, self.keepsAll, self.now) = (yearly, keepsAll, now)
  }

  /// Why each of an account's snapshots is kept; no reason for those that are forgotten.
  ///
  /// - Parameters:
  ///   - moments: when they were made, in the order of the file; nil where that cannot be read.
  ///   - complete: whether each has all its records and tree nodes; empty if all have.
  ///   - misdated: whether the time of each is wrong; nil to find that out from the times alone.
  package func reasons(
    _ moments: [Moment?], complete: [Bool] = [], misdated: [Bool]? = nil
  ) -> [Set<Reason>] {
    let misdated = misdated ?? SnapshotTimes(moments, now: now).areWrong
    var reasons = [Set<Reason>](repeating: [], count: moments.count)
    if let newest = moments.indices.last { reasons[newest].insert(.newest) }
    if keepsAll { for index in moments.indices { reasons[index].insert(.notNamed) } }
    for index in moments.indices where moments[index] == nil { reasons[index].insert(.undated) }
    let newestComplete = complete.lastIndex(of: true)
    let usable = moments.indices
      .filter { moments[$0] != nil && (newestComplete == nil || complete[$0]) }
    let credible = usable.filter { !misdated[$0] }
    let dated = (credible.isEmpty ? usable : credible)
      .sorted { Moment.areInOrder((moments[$1], $1), (moments[$0], $0)) }
    let passedBy = Set(moments.indices.filter { moments[$0] != nil }).subtracting(dated)
    for index in (dated + passedBy.sorted(by: >)).prefix(max(last, 0)) {
      reasons[index].insert(.last)
    }
    // By the number of a day since the beginning of 1970, which was a Thursday.
    let rules: [(Reason, Int, (Int64) -> Int64)] = [
      (.daily, daily, { $0 }), (.weekly, weekly, { CalendarDay.floor($0 + 3, 7) }),
      (.monthly, monthly, Self.month), (.yearly, yearly, { CalendarDay.floor(Self.month($0), 12) }),
    ]
    for (reason, count, period) in rules {
      var periods: Set<Int64> = []
      for index in dated where periods.count < count {
        let day = CalendarDay.floor(moments[index]?.seconds ?? 0, 86_400)
        if periods.insert(period(day)).inserted { reasons[index].insert(reason) }
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

extension RetentionPolicy {
  /// The decision about each snapshot.
  package struct Plan: Sendable {
    /// What is decided about a snapshot: why it is kept, if it is, and whether its time is wrong,
    /// so that it took no place of a rule.
    package typealias Verdict = (
      entry: SnapshotHistory.Entry, reasons: Set<RetentionPolicy.Reason>, isMisdated: Bool
    )

    /// The snapshots, the oldest first; one without a reason to keep it is forgotten.
    package let verdicts: [Verdict]
    /// The newest complete snapshot of each account that keeps only such as lack records or tree
    /// nodes.
    package let lastComplete: [SnapshotHistory.Entry]

    /// A plan for the snapshots of an archive.
    ///
    /// - Parameters:
    ///   - history: the snapshots.
    ///   - policy: which are kept, of each account.
    ///   - named: snapshots that are forgotten whatever the policy says, by their numbers.
    ///   - account: the only account of which any are forgotten; nil for all.
    /// - Throws: ``SelectionError`` for a number that no snapshot has; ``BackupError`` if an
    ///   account would have none left.
    package init(
      _ history: SnapshotHistory, _ policy: RetentionPolicy, forgetting named: Set<Int> = [],
      account: DID? = nil
    ) throws {
      var places: [DID: [Int]] = [:]
      for (index, entry) in history.entries.enumerated() {
        places[entry.did, default: []].append(index)
      }
      var reasons = [Set<RetentionPolicy.Reason>](
        repeating: [.otherAccount], count: history.entries.count)
      var areMisdated = [Bool](repeating: false, count: history.entries.count)
      for (did, indices) in places {
        let found = indices.map { history.entries[$0] }
        let times = SnapshotTimes(
          found.map(\.moment), revisions: found.map(\.rev),
          unordered: Set(found.indices.filter { !found[$0].isVouched }), now: policy.now)
        let misdated = times.areWrong
        for (index, isWrong) in zip(indices, misdated) { areMisdated[index] = isWrong }
        guard account == nil || account == did else { continue }
        let kept = policy.reasons(
          times.moments, complete: found.map(\.isComplete), misdated: misdated)
        for (index, why) in zip(indices, kept) { reasons[index] = why }
      }
      for disruption in history.disruptions {
        reasons[disruption.before].insert(.beforeDisruption)
        if disruption.kind == .fork { reasons[disruption.after].insert(.beforeDisruption) }
      }
      for (index, entry) in history.entries.enumerated()
      where !entry.standing.accepted.isDisjoint(with: [.rollback, .fork]) {
        reasons[index].insert(.acceptance)
      }
      for newest in history.newestOfAccounts { reasons[newest.number - 1].insert(.newest) }
      for number in named {
        guard history.entries.indices.contains(number - 1) else {
          throw SelectionError.noSuchSnapshot(
            "number \(number)", available: "the archive has \(history.entries.count)")
        }
        reasons[number - 1] = []
      }
      for newest in history.newestOfAccounts
      where !history.entries.contains(where: {
        $0.did == newest.did && !reasons[$0.number - 1].isEmpty
      }) {
        throw BackupError.lastSnapshot(history.name(of: newest.did))
      }
      let verdicts = history.entries.indices.map { index -> Verdict in
        (history.entries[index], reasons[index], areMisdated[index])
      }
      self.verdicts = verdicts
      lastComplete = places.keys.compactMap { did in
        let complete = verdicts.filter { $0.entry.did == did && $0.entry.isComplete }
        return complete.allSatisfy(\.reasons.isEmpty) ? complete.last?.entry : nil
      }.sorted { $0.number < $1.number }
    }

    /// How many are forgotten.
    package var forgottenCount: Int { verdicts.count { $0.reasons.isEmpty } }

    /// Those that are kept, the oldest first.
    package var links: [ChainLink] {
      verdicts.filter { !$0.reasons.isEmpty }.map { ChainLink($0.entry) }
    }
  }
}
