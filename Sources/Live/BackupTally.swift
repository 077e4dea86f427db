internal import Snapshots

/// How many accounts of one run had each result.
package struct BackupTally: Sendable {
  private var counts: [BackupReport.Outcome: Int] = [:]
  /// How many of the accounts that were checked recently lack something.
  package private(set) var recentIncompleteCount = 0
  /// How many could not be backed up.
  package var failedCount = 0
  /// How many were only planned.
  package var plannedCount = 0
  /// How many the server does not serve.
  package var skippedCount = 0
  /// How many entries of the server's list name no account.
  package var malformedCount = 0
  /// By how many bytes archives have grown.
  package private(set) var bytesAdded: UInt64 = 0

  /// Nothing yet.
  package init() {}

  /// How many backups had an outcome.
  package subscript(outcome: BackupReport.Outcome) -> Int { counts[outcome] ?? 0 }

  /// How many accounts are finished.
  package var accountCount: Int { counts.values.reduce(failedCount + plannedCount, +) }

  /// How many of their archives are incomplete.
  package var incompleteCount: Int { self[.incomplete] + recentIncompleteCount }

  /// Counts a backup.
  package mutating func add(_ report: BackupReport) {
    counts[report.outcome, default: 0] += 1
    if report.outcome == .recent, !report.snapshot.isSettled { recentIncompleteCount += 1 }
    bytesAdded += report.bytesAdded
  }
}
