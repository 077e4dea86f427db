internal import Dispatch
internal import Synchronization

/// A serial dispatch queue that an actor runs on: its work may block without holding up the tasks
/// of others.
///
/// It is not a thread of its own: queues share the threads of libdispatch, which starts more while
/// some are blocked, up to a limit. Whatever waits for work in another queue must not be able to
/// take all of them.
package final class OwnQueue: SerialExecutor {
  private let queue: DispatchQueue

  /// A queue; debuggers show the name.
  package init(_ name: String) { queue = DispatchQueue(label: name) }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

/// Does what may block, such as reading, writing and hashing much, in a dispatch queue of its own.
///
/// There are as few threads for tasks as there are processor cores, and one that blocks keeps
/// everything else waiting. Queues have more, though not without limit (see ``OwnQueue``).
/// `work` learns from ``Stopping`` whether the task is cancelled.
package func onOwnQueue<Value: Sendable>(
  _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
  let isCancelled = Atomic(false)
  let stopping = Stopping { isCancelled.load(ordering: .relaxed) }
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: "work").async {
        continuation.resume(with: Result { try Stopping.passing(stopping, to: work) })
      }
    }
  } onCancel: {
    isCancelled.store(true, ordering: .relaxed)
  }
}
