internal import LibC

/// The clock by which waits are measured; the tests' clock advances by itself.
package protocol NetworkClock: Sendable {
  /// Seconds since some moment, never fewer than before.
  var now: Double { get }
  /// Seconds since 1970, as servers count.
  var unixTime: Double { get }
  /// Waits.
  func sleep(_ seconds: Double) async throws
}

/// The machine's time.
package struct SystemClock: NetworkClock {
  private let start = ContinuousClock.now

  package init() {}

  package var now: Double { (ContinuousClock.now - start) / .seconds(1) }

  package var unixTime: Double {
    var time = timespec()
    _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  package func sleep(_ seconds: Double) async throws {
    try await Task.sleep(for: .seconds(seconds))
  }
}
