internal import Synchronization

/// So many places for those who want to do something at a time.
///
/// 1. No more than ``count`` are taken, or as many as were when that was lowered.
/// 2. Whoever waits gets one in the order of asking.
final class Places: Sendable {
  private struct State {
    var count: Int
    var taken = 0
    var waiting: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    var lastID = 0

    /// Those who have a place now.
    mutating func seated() -> [CheckedContinuation<Void, any Error>] {
      let free = min(max(0, count - taken), waiting.count)
      guard free > 0 else { return [] }
      taken += free
      defer { waiting.removeFirst(free) }
      return waiting.prefix(free).map(\.continuation)
    }
  }

  private let state: Mutex<State>

  /// So many places, all of them free.
  init(_ count: Int) { state = Mutex(State(count: max(1, count))) }

  /// How many there are at present.
  var count: Int { state.withLock { $0.count } }

  /// Changes how many there are.
  func resize(_ count: Int) { change { $0.count = max(1, count) } }

  /// Waits for a place, which has to be given back.
  ///
  /// - Throws: `CancellationError`, without a place.
  func take() async throws {
    try Task.checkCancellation()
    let id: Int? = state.withLock { state in
      if state.taken < state.count, state.waiting.isEmpty {
        state.taken += 1
        return nil
      }
      state.lastID += 1
      return state.lastID
    }
    guard let id else { return }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        change { $0.waiting.append((id, continuation)) }
        // Cancelled before it waited.
        if Task.isCancelled { stopWaiting(id) }
      }
    } onCancel: {
      stopWaiting(id)
    }
  }

  /// Gives a place back.
  func giveBack() { change { $0.taken -= 1 } }

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
