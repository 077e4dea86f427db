/// How long to wait before something is tried again that failed: exponential backoff with full
/// jitter.
///
/// Each wait is a random part of a time that doubles, so that many who failed at once do not come
/// back at once.
package enum Backoff {
  /// The longest first wait, in seconds.
  private static let base = 0.5
  /// The longest wait, in seconds.
  private static let cap = 60.0
  /// The shortest wait, in seconds: a server that fails at once would be asked without a pause.
  static let shortest = 0.05

  /// How long to wait after this many failures in a row, at least one, in seconds.
  ///
  /// - Parameter chance: a random number from 0 to 1.
  static func delay(_ failures: Int, _ chance: () -> Double) -> Double {
    let longest = min(cap, base * Double(1 << max(0, min(failures - 1, 30))))
    return max(shortest, longest * chance())
  }

  /// Whether an answer of this status may be another one the next time.
  ///
  /// The reference server answers 500 for ever where it has lost a blob, so attempts are counted
  /// for these.
  package static func mayHelp(afterStatus status: Int) -> Bool {
    [408, 425, 429, 500].contains(status) || HostState.gatewayFaults.contains(status)
  }
}
