internal import Synchronization

/// A semaphore with `count` places.
///
/// 1. No more than `count` places are taken, unless more were taken when that was lowered.
/// 2. Waiting requests get places in the order in which they asked.
/// 3. A slow request may leave its place to another before it is done; no more have done so at a
///    time than twice as many as there were places at first.
package final class Places: Sendable {
  /// A place that was taken.
  package final class Seat: Sendable {
    private enum Stage { case taken, left, over }
    private let stage = Mutex(Stage.taken)
    private let places: Places

    fileprivate init(_ places: Places) { self.places = places }

    /// Leaves the place to another before it is given back, unless too many have done so.
    package func leave() {
      stage.withLock { stage in
        if stage == .taken, places.mayLeave() { stage = .left }
      }
    }

    /// Gives it back.
    package func giveBack() {
      let before = stage.withLock { stage in
        defer { stage = .over }
        return stage
      }
      switch before {
      case .taken: places.change { $0.taken -= 1 }
      case .left: places.change { $0.left -= 1 }
      case .over: break
      }
    }
  }

  private struct State {
    var count: Int
    var taken = 0
    /// How many requests have left their places and are not done.
    var left = 0
    var waiting: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    var lastID = 0

    /// Gives free places to waiting tasks, and returns their continuations.
    mutating func seated() -> [CheckedContinuation<Void, any Error>] {
      let free = min(max(0, count - taken), waiting.count)
      guard free > 0 else { return [] }
      taken += free
      defer { waiting.removeFirst(free) }
      return waiting.prefix(free).map(\.continuation)
    }
  }

  private let state: Mutex<State>

  private let mostLeft: Int

  /// So many places, all of them free.
  package init(_ count: Int) {
    state = Mutex(State(count: max(1, count)))
    mostLeft = 2 * max(1, count)
  }

  /// How many there are at present.
  package var count: Int { state.withLock { $0.count } }

  /// How many are taken, and neither left nor given back.
  package var taken: Int { state.withLock { $0.taken } }

  /// Changes how many there are.
  func resize(_ count: Int) { change { $0.count = max(1, count) } }

  /// Waits for a place, which has to be given back.
  ///
  /// - Throws: `CancellationError`, without a place.
  package func take() async throws -> Seat {
    try Task.checkCancellation()
    let id: Int? = state.withLock { state in
      if state.taken < state.count, state.waiting.isEmpty {
        state.taken += 1
        return nil
      }
      state.lastID += 1
      return state.lastID
    }
    guard let id else { return Seat(self) }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        change { $0.waiting.append((id, continuation)) }
        // Cancelled before it waited.
        if Task.isCancelled { stopWaiting(id) }
      }
    } onCancel: {
      stopWaiting(id)
    }
    return Seat(self)
  }

  private func mayLeave() -> Bool {
    var hasLeft = false
    change { state in
      guard state.left < mostLeft else { return }
      state.left += 1
      state.taken -= 1
      hasLeft = true
    }
    return hasLeft
  }

  private func stopWaiting(_ id: Int) {
    let continuation = state.withLock { state in
      state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0).continuation }
    }
    continuation?.resume(throwing: CancellationError())
  }

  private func change(_ body: (inout State) -> Void) {
    let seated = state.withLock { state in
      body(&state)
      return state.seated()
    }
    for continuation in seated { continuation.resume() }
  }
}
