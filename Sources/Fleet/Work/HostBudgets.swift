internal import HTTP
internal import Postgres

/// Makes this worker's requests wait until the budget of their server, which all workers share,
/// allows them.
///
/// Requests are taken from the database some at a time. What a worker has not used when it ends is
/// lost: servers then get fewer requests, never more.
actor HostBudgets {
  private let fleet: FleetDatabase
  private let rate: Double
  private var hosts: [String: Host] = [:]

  private struct Host {
    var granted = 0
    /// Until when that counts.
    var end = ContinuousClock.now
    /// One request at a time is let through, or takes more from the database.
    let turns = Places(1)
  }

  /// For how many seconds requests are taken at a time.
  private static let portion = 0.25
  /// For how long what was taken may be used: a server must not get a burst of saved-up requests.
  private static let validity: Duration = .seconds(1)
  /// The longest pause before an exhausted budget is asked again, in seconds.
  private static let longestPause = 5.0

  init(_ fleet: FleetDatabase, requestsPerSecond: Double) {
    (self.fleet, rate) = (fleet, requestsPerSecond)
  }

  /// Returns when one more request may be sent to a server.
  ///
  /// - Throws: `DatabaseError`; `CancellationError`.
  func admit(_ origin: String) async throws {
    let known = hosts[origin] ?? Host()
    hosts[origin] = known
    let turn = try await known.turns.take()
    defer { turn.giveBack() }
    while true {
      if let known = hosts[origin], known.granted > 0, .now < known.end {
        hosts[origin]?.granted -= 1
        return
      }
      try await fill(origin)
    }
  }

  private func fill(_ origin: String) async throws {
    let wanted = max(1, Int(rate * Self.portion))
    let (granted, rate) = try await fleet.takeRequests(wanted, of: origin, rate: rate)
    hosts[origin]?.granted = granted
    hosts[origin]?.end = .now + Self.validity
    guard granted == 0 else { return }
    try await Task.sleep(for: .seconds(min(Self.longestPause, 1 / max(rate, 0.01))))
  }
}
