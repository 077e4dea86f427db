internal import Live
internal import Terminal

/// The progress of one account's backup, for a line about it.
struct BackupActivity {
  /// The account as the command named it.
  let account: String
  /// What it is called in lines.
  var name: String
  /// When its last line was printed, if lines are not redrawn.
  var said = ContinuousClock.now
  private var progress = BackupProgress(.resolving)
  private var stageBegin = ContinuousClock.now

  init(_ account: String) { (self.account, name) = (account, account) }

  mutating func note(_ progress: BackupProgress, at now: ContinuousClock.Instant) {
    if self.progress.stage != progress.stage { stageBegin = now }
    self.progress = progress
  }

  /// The line's words: the stage, how much is done of how much, how fast, how long still.
  func text(at now: ContinuousClock.Instant) -> String {
    let seconds = (now - stageBegin) / .seconds(1)
    let rate = seconds > 0.2 ? Double(progress.bytes) / seconds : 0
    let speed = rate > 0 ? ", \(Quantity.bytes(UInt64(rate)))/s" : ""
    switch progress.stage {
    case .resolving: return "finding the account"
    case .privateData: return "private data"
    case .context: return "people and posts of others, \(Quantity.bytes(progress.bytes))"
    case .repository: return "repository \(Quantity.bytes(progress.bytes))\(speed)"
    case .checking: return "checking the repository"
    case .listing: return "listing blobs, \(Quantity.grouped(progress.blobsTotal)) so far"
    case .committing: return "committing"
    case .blobs:
      let settled = progress.blobsDone + progress.blobsFailed
      var text =
        "blobs \(Quantity.grouped(progress.blobsDone)) of \(Quantity.grouped(progress.blobsTotal)), \(Quantity.bytes(progress.bytes))\(speed)"
      if progress.blobsFailed > 0 { text += ", \(Quantity.grouped(progress.blobsFailed)) missing" }
      if seconds > 1, settled > 0, settled < progress.blobsTotal {
        let rest = Double(progress.blobsTotal - settled) * seconds / Double(settled)
        text += ", \(Quantity.duration(seconds: rest)) left"
      }
      return ProgressBar.before(text, UInt64(settled), of: UInt64(progress.blobsTotal))
    }
  }
}
