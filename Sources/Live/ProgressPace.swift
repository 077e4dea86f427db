internal import Synchronization

/// Whether an account's servers send next to nothing, so that another account may have its place.
///
/// 1. An account is slow when it waits for its servers and they have sent less than ``leastBytes``
///    for as long as there is patience.
/// 2. What is done here with what has come is not the servers' fault, however long it takes.
final class StallDetector: Sendable {
  private struct State {
    var stage = BackupProgress.Stage.resolving
    /// How many bytes of the stage had arrived when it was last seen to get on, and when that was.
    var bytes: UInt64 = 0
    var seen = ContinuousClock.now
    var isWaiting: Bool { stage != .checking && stage != .committing }
  }

  private static let leastBytes: UInt64 = 128 << 10

  private let patience: Duration
  private let state = Mutex(State())

  /// The pace of an account that begins now.
  init(patience: Duration) { self.patience = patience }

  /// Takes in what happens to the account.
  func note(_ event: BackupEvent) {
    guard case .progress(let progress) = event else { return }
    state.withLock { state in
      guard
        progress.stage != state.stage || progress.bytes < state.bytes
          || progress.bytes >= state.bytes + Self.leastBytes
      else { return }
      (state.stage, state.bytes, state.seen) = (progress.stage, progress.bytes, .now)
    }
  }

  /// Returns when the account is slow.
  ///
  /// - Throws: `CancellationError`.
  func isSlow() async throws {
    while true {
      let (isWaiting, since) = state.withLock { ($0.isWaiting, $0.seen) }
      let now = ContinuousClock.now
      let due = (isWaiting ? since : now) + patience
      if due <= now { return }
      try await Task.sleep(until: due)
    }
  }
}

/// How often it is said how far something is: pieces arrive by the thousand, and a person who
/// watches wants to see some of it a second.
final class ProgressPace: Sendable {
  private static let interval: Duration = .milliseconds(50)

  private let said = Mutex<ContinuousClock.Instant>(.now)

  /// Whether it is time to say it again; if so, that is taken for done.
  func isDue() -> Bool {
    said.withLock { said in
      let now = ContinuousClock.now
      guard said.duration(to: now) >= Self.interval else { return false }
      said = now
      return true
    }
  }
}
