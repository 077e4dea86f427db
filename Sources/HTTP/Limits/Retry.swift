/// Does something again that failed for a reason that may pass: exponential backoff with full
/// jitter.
///
/// Each wait is a random part of a time that doubles, so that many who failed at once do not come
/// back at once.
package struct Retry: Sendable {
  /// How often something is done at most.
  var attempts: Int
  /// The longest first wait, in seconds.
  var base = 0.5
  /// The longest wait, in seconds.
  var cap = 60.0
  let clock: any NetworkClock
  /// A random number from 0 to 1.
  let chance: @Sendable () -> Double

  package init(
    attempts: Int, clock: any NetworkClock, chance: @escaping @Sendable () -> Double
  ) {
    self.attempts = max(1, attempts)
    self.clock = clock
    self.chance = chance
  }

  /// The shortest wait, in seconds: a server that fails at once would be asked without a pause.
  static let shortest = 0.05

  /// Does something until it comes out well, or in a way that stays, or often enough.
  ///
  /// - Parameters:
  ///   - operation: what to do.
  ///   - mayPass: why the outcome may be another one the next time; nil if it stays.
  ///   - waiting: is told how long the next wait is, in seconds, and what for.
  /// - Returns: What came out last, and how often it was done.
  /// - Throws: `CancellationError`.
  func run<Value>(
    _ operation: () async -> Result<Value, any Error>,
    mayPass: (Result<Value, any Error>) -> String?,
    waiting: (Double, String) -> Void
  ) async throws -> (Result<Value, any Error>, attempts: Int) {
    var failures = 0
    while true {
      let result = await operation()
      failures += 1
      guard failures < attempts, let why = mayPass(result) else { return (result, failures) }
      let delay = delay(failures: failures)
      waiting(delay, why)
      try await clock.sleep(delay)
    }
  }

  /// How long to wait after so many failures in a row, at least one.
  func delay(failures: Int) -> Double {
    let longest = min(cap, base * Double(1 << max(0, min(failures - 1, 30))))
    return max(Self.shortest, longest * chance())
  }

  /// Whether an answer of this status may be another one the next time.
  ///
  /// The reference server answers 500 for ever where it has lost a blob, so attempts are counted
  /// for these.
  package static func isTransient(status: Int) -> Bool {
    switch status {
    // 52x: a proxy in front had no answer from the server.
    case 408, 425, 429, 500, 502, 503, 504, 520...524, 527, 530: true
    default: false
    }
  }
}
