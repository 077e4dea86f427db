internal import Dispatch
internal import Synchronization

/// A result that is waited for and given once: by the work, by the clock, or because the task that
/// waits is cancelled.
///
/// Work that blocks on another thread is left behind: this does not wait for that thread.
package final class Awaited<Value: Sendable>: Sendable {
  private typealias Continuation = CheckedContinuation<Value, any Error>

  private enum State {
    case idle
    case expected(Continuation)
    case given(Result<Value, any Error>, ContinuousClock.Instant)
  }

  private let state = Mutex(State.idle)

  /// There is no result yet.
  package init() {}

  /// When it was given, so that it is of no use to continue; nil while it is waited for.
  package var given: ContinuousClock.Instant? {
    state.withLock { state in
      guard case .given(_, let time) = state else { return nil }
      return time
    }
  }

  /// Sets the result, unless it is already set.
  package func give(_ result: Result<Value, any Error>) {
    let continuation = state.withLock { state -> Continuation? in
      if case .given = state { return nil }
      defer { state = .given(result, .now) }
      guard case .expected(let continuation) = state else { return nil }
      return continuation
    }
    continuation?.resume(with: result)
  }

  /// Begins the work and waits for the result.
  ///
  /// - Parameters:
  ///   - limit: how long.
  ///   - failure: what is thrown after that.
  ///   - begin: has other threads begin the work.
  /// - Throws: What was given; `failure`; `CancellationError` as soon as the task is cancelled.
  package func value(
    within limit: Duration, else failure: any Error, _ begin: () -> Void
  ) async throws -> Value {
    let timer = DispatchSource.makeTimerSource(queue: deadlines)
    timer.setEventHandler { [self] in give(.failure(failure)) }
    timer.schedule(deadline: .now() + max(0, limit / .seconds(1)))
    timer.activate()
    defer { timer.cancel() }
    return try await value(begin)
  }

  /// Begins the work and waits for the result, as long as it takes.
  ///
  /// - Throws: What was given; `CancellationError` as soon as the task is cancelled.
  package func value(_ begin: () -> Void) async throws -> Value {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        expect(continuation)
        begin()
      }
    } onCancel: {
      give(.failure(CancellationError()))
    }
  }

  private func expect(_ continuation: CheckedContinuation<Value, any Error>) {
    let early = state.withLock { state -> Result<Value, any Error>? in
      if case .given(let result, _) = state { return result }
      state = .expected(continuation)
      return nil
    }
    if let early { continuation.resume(with: early) }
  }
}

extension Task where Failure == any Error {
  /// The result; the one that waits for it may be cancelled, and it continues.
  package var valueUnlessCancelled: Success {
    get async throws {
      let result = Awaited<Success>()
      return try await result.value { Task<Void, Never> { result.give(await self.result) } }
    }
  }

  /// The result, or `failure` after so long; it continues.
  package func value(within limit: Duration, else failure: any Error) async throws -> Success {
    let result = Awaited<Success>()
    // By the clock of tasks: where these have to wait for a thread, so does the limit.
    let timer = Task<Void, any Error> {
      try await Task<Never, Never>.sleep(for: limit)
      result.give(.failure(failure))
    }
    defer { timer.cancel() }
    return try await result.value { Task<Void, Never> { result.give(await self.result) } }
  }
}

/// A queue of its own: the threads of the global one may all be blocked.
private let deadlines = DispatchQueue(label: "deadlines")
