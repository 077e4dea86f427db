package import Files
internal import Synchronization

/// One line on a terminal with the progress of long work: how much is done, how fast, how long
/// it still takes.
///
/// It shows nothing in the first second, nothing when standard error is not a terminal, and ten
/// times a second at most.
package final class ProgressLine {
  private static let delay: ContinuousClock.Duration = .seconds(1)
  private static let interval: ContinuousClock.Duration = .milliseconds(100)

  private let clock = ContinuousClock()
  private let begin: ContinuousClock.Instant
  private var last: ContinuousClock.Instant
  private var stage = ""
  private var stageBegin: ContinuousClock.Instant

  package init() {
    begin = clock.now
    last = begin
    stageBegin = begin
  }

  /// What observes work: a line on the terminal, or nothing.
  package static func observer(quiet: Bool) -> Progress.Observer {
    guard !quiet, Console.canRedraw else { return { _ in } }
    let line = ProgressLine()
    return { line.update($0) }
  }

  /// The same, for work on several threads.
  package static func sharedObserver(quiet: Bool) -> @Sendable (Progress) -> Void {
    guard !quiet, Console.canRedraw else { return { _ in } }
    let line = Shared()
    return { progress in line.line.withLock { $0.update(progress) } }
  }

  private final class Shared: Sendable { let line = Mutex(ProgressLine()) }

  package func update(_ progress: Progress) {
    let now = clock.now
    if progress.stage != stage {
      stage = progress.stage
      stageBegin = now
    }
    guard now - begin >= Self.delay, now - last >= Self.interval else { return }
    last = now
    let words = Self.text(progress, elapsed: now - stageBegin)
    Console.showProgress(ProgressBar.before(words, progress.done, of: progress.total))
  }

  /// The line's words.
  package static func text(_ progress: Progress, elapsed: ContinuousClock.Duration) -> String {
    let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
    let counts = progress.stage == "blobs" || progress.stage == "records"
    let done = counts ? "\(progress.done)" : Quantity.bytes(progress.done)
    guard progress.total > 0 else { return "\(progress.stage) \(done)" }
    let total = counts ? "\(progress.total)" : Quantity.bytes(progress.total)
    var text =
      "\(progress.stage) \(done) of \(total), \(progress.done * 100 / max(progress.total, 1)) %"
    if seconds > 0.2, progress.done > 0 {
      let rate = Double(progress.done) / seconds
      if !counts { text += ", \(Quantity.bytes(UInt64(rate)))/s" }
      let rest = Double(progress.total - min(progress.done, progress.total)) / rate
      text += ", \(Quantity.duration(seconds: rest)) left"
    }
    return text
  }
}
