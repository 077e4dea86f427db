internal import Synchronization

/// Finds the transfers that are slow, and has them give their places to others.
///
/// 1. A transfer is looked at once, so long after it has begun; they are in the order of that.
/// 2. One task looks at all of them, and there is one only while there are any.
final class SlowTransfers: Sendable {
  /// A transfer that is to be looked at.
  final class Seat: Sendable {
    private let state = Mutex((hasLeft: false, hasEnded: false))
    private let limits: HostLimits
    /// How many bytes have come.
    private let received: @Sendable () -> Int

    fileprivate init(_ limits: HostLimits, received: @escaping @Sendable () -> Int) {
      self.limits = limits
      self.received = received
    }

    fileprivate var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Gives the place to another if the transfer is slow.
    fileprivate func leaveIfSlow() {
      guard received() < SlowTransfers.slowCount else { return }
      state.withLock { state in
        if !state.hasEnded { state.hasLeft = limits.leavePlace() }
      }
    }

    /// Ends the transfer; answers whether it has left its place before.
    func end() -> Bool {
      state.withLock { state in
        state.hasEnded = true
        return state.hasLeft
      }
    }
  }

  private struct State {
    var seats: [(seat: Seat, due: ContinuousClock.Instant)] = []
    var isWatched = false
    /// How many there may be before those are let go of that have ended.
    var roomBeforeSweep = SlowTransfers.leastSweep
  }

  /// A transfer that has brought less than so many bytes after so long is slow.
  private static let slowAfter: Duration = .seconds(10)
  private static let slowCount = 128 << 10
  private static let leastSweep = 64

  private let state = Mutex(State())

  /// Looks at a transfer when it is time.
  ///
  /// - Parameters:
  ///   - pipe: what its body goes through.
  ///   - limits: what its place is taken of.
  func watch(_ pipe: BodyPipe, _ limits: HostLimits) -> Seat {
    let seat = Seat(limits) { [weak pipe] in pipe?.receivedCount ?? 0 }
    let begins = state.withLock { state in
      if state.seats.count >= state.roomBeforeSweep {
        state.seats.removeAll { $0.seat.hasEnded }
        state.roomBeforeSweep = max(Self.leastSweep, 2 * state.seats.count)
      }
      state.seats.append((seat, .now + Self.slowAfter))
      defer { state.isWatched = true }
      return !state.isWatched
    }
    if begins { Task { try await look() } }
    return seat
  }

  private func look() async throws {
    while let next = nextDue() { try await Task.sleep(until: next) }
  }

  /// Looks at those whose time has come; answers when that of the next one is.
  private func nextDue() -> ContinuousClock.Instant? {
    let (due, next) = state.withLock { state -> ([Seat], ContinuousClock.Instant?) in
      let count = state.seats.firstIndex { $0.due > .now } ?? state.seats.count
      defer {
        state.seats.removeFirst(count)
        state.isWatched = !state.seats.isEmpty
      }
      return (
        state.seats.prefix(count).map(\.seat),
        count < state.seats.count ? state.seats[count].due : nil
      )
    }
    for seat in due { seat.leaveIfSlow() }
    return next
  }
}
