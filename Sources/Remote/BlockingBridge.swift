internal import Dispatch
internal import Synchronization

/// A queue that carries transfers for those who wait for them: reading an archive is not
/// asynchronous, and the archive may lie elsewhere.
///
/// Tasks that are waited for may not need the threads of all other tasks: those may be the ones
/// that wait.
final class BlockingBridge: TaskExecutor {
  static let shared = BlockingBridge()
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
    let outcome = Mutex<Result<Value, any Error>>(.failure(CancellationError()))
    Task(executorPreference: self) {
      let result: Result<Value, any Error>
      do { result = .success(try await work()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
      done.signal()
    }
    done.wait()
    return try outcome.withLock { $0 }.get()
  }
}
