internal import Dispatch

/// A thread of its own, as what an actor runs on: what happens there may block, and the tasks of
/// everybody else go on.
package final class OwnThread: SerialExecutor {
  private let queue: DispatchQueue

  /// A thread; the name is shown by debuggers.
  package init(_ name: String) { queue = DispatchQueue(label: name) }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

/// Does what may block, such as reading, writing and hashing much, on a thread of its own.
///
/// There are as few threads for tasks as there are processor cores: one that blocks keeps
/// everything else waiting.
package func onOwnThread<Value: Sendable>(
  _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    DispatchQueue(label: "work").async { continuation.resume(with: Result(catching: work)) }
  }
}
