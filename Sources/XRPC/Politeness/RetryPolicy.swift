/// What is tried again, and when: exponential backoff with full jitter.
///
/// Each wait is a random part of a time that doubles, so that many who failed at once do not come back at once.
struct RetryPolicy: Sendable {
  /// How often something is tried at most.
  var attempts: Int
  /// The longest first wait, in seconds.
  var base: Double = 0.5
  /// The longest wait, in seconds.
  var cap: Double = 60
  /// How often a server's naming a time is obeyed without that counting as an attempt.
  var maximumWaits = 30

  init(attempts: Int) { self.attempts = max(1, attempts) }

  /// How long to wait after so many failures in a row.
  ///
  /// - Parameters:
  ///   - failures: how many there were, at least one.
  ///   - chance: a random number from 0 to 1.
  func delay(failures: Int, chance: Double) -> Double {
    let longest = min(cap, base * Double(1 << max(0, min(failures - 1, 30))))
    // Never nothing at all: a server that fails at once would be asked without a pause.
    return max(Self.shortest, longest * chance)
  }

  /// The shortest wait, in seconds.
  static let shortest = 0.05

  /// Whether an answer of this status may be another one the next time.
  ///
  /// The reference server answers 500 for ever where it has lost a blob, so attempts are counted for these.
  static func isTransient(status: Int) -> Bool {
    switch status {
    // 52x: a proxy in front had no answer from the server.
    case 408, 425, 429, 500, 502, 503, 504, 520...524, 527, 530: true
    default: false
    }
  }
}
