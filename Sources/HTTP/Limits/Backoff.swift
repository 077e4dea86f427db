/// How long to wait before the next attempt after a failure: exponential backoff with full jitter.
///
/// Each wait is a random part of a time that doubles, so that many clients that failed together do
/// not come back together.
package enum Backoff {
  /// The longest first wait, in seconds.
  private static let base = 0.5
  /// The longest wait, in seconds.
  private static let cap = 60.0
  /// The shortest wait, in seconds: without it, a server that fails immediately would be asked
  /// without a pause.
  static let shortest = 0.05

  /// How long to wait after this many failures in a row, at least one, in seconds.
  ///
  /// - Parameter chance: a random number from 0 to 1.
  static func delay(_ failures: Int, _ chance: () -> Double) -> Double {
    let longest = min(cap, base * Double(1 << max(0, min(failures - 1, 30))))
    return max(shortest, longest * chance())
  }
}
