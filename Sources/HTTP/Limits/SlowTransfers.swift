internal import Synchronization

/// Finds the transfers that are slow, and has them leave their places to others.
///
/// 1. A transfer is looked at once, so long after it has begun; they are in the order of that.
/// 2. One task looks at all of them, and there is one only while there are any.
final class SlowTransfers: Sendable {
  private struct Transfer {
    /// What its body goes through.
    weak let pipe: BodyPipe?
    let seat: Places.Seat
    let due: ContinuousClock.Instant
  }

  private struct State {
    var transfers: [Transfer] = []
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
  func watch(_ pipe: BodyPipe, _ seat: Places.Seat) {
    let begins = state.withLock { state in
      if state.transfers.count >= state.roomBeforeSweep {
        state.transfers.removeAll { $0.seat.isOver }
        state.roomBeforeSweep = max(Self.leastSweep, 2 * state.transfers.count)
      }
      state.transfers.append(Transfer(pipe: pipe, seat: seat, due: .now + Self.slowAfter))
      defer { state.isWatched = true }
      return !state.isWatched
    }
    guard begins else { return }
    Task {
      while let next = look() { try await Task.sleep(until: next) }
    }
  }

  /// Looks at those whose time has come; answers when that of the next one is.
  private func look() -> ContinuousClock.Instant? {
    let (due, next) = state.withLock { state -> ([Transfer], ContinuousClock.Instant?) in
      let now = ContinuousClock.now
      let count = state.transfers.firstIndex { $0.due > now } ?? state.transfers.count
      let due = Array(state.transfers.prefix(count))
      state.transfers.removeFirst(count)
      state.isWatched = !state.transfers.isEmpty
      return (due, state.transfers.first?.due)
    }
    for transfer in due where (transfer.pipe?.receivedCount ?? .max) < Self.slowCount {
      transfer.seat.leave()
    }
    return next
  }
}
