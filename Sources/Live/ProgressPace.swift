internal import Synchronization

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
