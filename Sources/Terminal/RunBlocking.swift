internal import Synchronization

/// Runs asynchronous work, and blocks until it ends.
///
/// The first signal to stop cancels it: it finishes what it must and throws, or returns what it
/// has. The second ends the process at once.
///
/// - Throws: What `body` throws; ``ExitStatus`` of the signal if that is `CancellationError` and a
///   signal was the cause.
package func runBlocking<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value)
  throws
  -> Value
{
  let outcome = Outcome<Value>()
  let wakeUp = try Interruption.beginNotifying()
  defer { Interruption.endNotifying() }
  let task = Task.detached {
    do {
      outcome.set(.success(try await body()))
    } catch {
      outcome.set(.failure(error))
    }
    wakeUp.send(0)
  }
  // What arrives is a signal's exit status, or 0 when the work is done.
  while wakeUp.receive() != 0 { task.cancel() }
  switch outcome.get() {
  case .success(let value): return value
  case .failure(let error):
    if error is CancellationError, let status = Interruption.received { throw status }
    throw error
  case nil: throw CancellationError()
  }
}

/// Where a task leaves its result.
private final class Outcome<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)

  func set(_ value: Result<Value, any Error>) { result.withLock { $0 = value } }

  func get() -> Result<Value, any Error>? { result.withLock { $0 } }
}
