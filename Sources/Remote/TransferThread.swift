internal import Dispatch
internal import Synchronization

/// A thread that carries transfers for those who wait for them: reading an archive is not
/// asynchronous, and the archive may lie elsewhere.
///
/// Tasks that are waited for may not need the threads of all other tasks: those may be the ones
/// that wait.
final class TransferThread: TaskExecutor {
  static let shared = TransferThread()
  private let queue = DispatchQueue(label: "transfers")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Does something there, and waits for it.
  ///
  /// - Throws: what `work` throws.
  func wait<Value: Sendable>(for work: @escaping @Sendable () async throws -> Value) throws -> Value
  {
    let done = DispatchSemaphore(value: 0)
    let outcome = Outcome<Value>()
    Task(executorPreference: self) {
      do {
        outcome.set(.success(try await work()))
      } catch {
        outcome.set(.failure(error))
      }
      done.signal()
    }
    done.wait()
    guard let result = outcome.get() else { throw CancellationError() }
    return try result.get()
  }

  private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)

    func set(_ value: Result<Value, any Error>) { result.withLock { $0 = value } }

    func get() -> Result<Value, any Error>? { result.withLock { $0 } }
  }
}
