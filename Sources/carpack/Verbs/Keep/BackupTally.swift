internal import Live
internal import Snapshots

/// How many accounts of a run came to what.
struct BackupTally {
  private var counts: [BackupReport.Outcome: Int] = [:]
  private(set) var recentIncompleteCount = 0
  private(set) var failedCount = 0
  var plannedCount = 0
  var skippedCount = 0
  private(set) var malformedCount = 0
  private(set) var bytesAdded: UInt64 = 0
  /// The worst of all.
  private(set) var status = ExitStatus.success

  subscript(outcome: BackupReport.Outcome) -> Int { counts[outcome] ?? 0 }

  /// Notes what came of something that is no account.
  mutating func add(_ status: ExitStatus) { self.status = .worst(self.status, status) }

  mutating func add(_ failure: Failure) {
    failedCount += 1
    add(failure.status)
  }

  /// Notes entries of a server's list that name no account: the run is then incomplete.
  mutating func add(malformed count: Int) {
    malformedCount += count
    add(.incomplete)
  }

  mutating func add(_ report: BackupReport) {
    let snapshot = report.snapshot
    counts[report.outcome, default: 0] += 1
    if report.outcome == .recent, !snapshot.isSettled { recentIncompleteCount += 1 }
    bytesAdded += report.bytesAdded
    if !snapshot.isSettled {
      // A list that broke off and may come next time is worth another run.
      add(snapshot.blobs.listFault?.isTransient == true ? .temporary : .incomplete)
    } else if report.lacksPrivateData {
      add(.incomplete)
    }
    if !snapshot.standing.grave.isEmpty { add(.notGenuine) }
    if !report.damage.isNone { add(.damaged) }
  }

  /// Whether "carpack fill" may help.
  var lacksBlobs: Bool { self[.incomplete] + recentIncompleteCount > 0 }

  /// All of it in words; nil if nothing came to an end.
  func sentence(after elapsed: Duration) -> String? {
    let total = counts.values.reduce(failedCount + plannedCount, +)
    guard total + skippedCount + malformedCount > 0 else { return nil }
    let parts = [
      (self[.complete], "complete"), (self[.upToDate], "up to date"),
      (self[.recent] - recentIncompleteCount, "recent"),
      (recentIncompleteCount, "recent and incomplete"), (self[.incomplete], "incomplete"),
      (plannedCount, "planned"), (failedCount, "failed"), (skippedCount, "skipped"),
      (malformedCount, "malformed in the list"),
    ]
    let words = parts.filter { $0.0 > 0 }.map { "\(Quantity.grouped($0.0)) \($0.1)" }
    let seconds = Double(elapsed.components.seconds)
    return
      "\(Quantity.count(total, "account")): \(words.joined(separator: ", ")); \(Quantity.bytes(bytesAdded)) added in \(Quantity.duration(seconds: seconds))"
  }
}
