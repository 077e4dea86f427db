import Dispatch
import Testing

/// A thread for the tasks of a test that blocks, or that measures time: the few threads that all
/// tasks share would be blocked by the one and miss the time of the other.
final class OwnThread: TaskExecutor {
  private let queue = DispatchQueue(label: "test")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Has each test run on an ``OwnThread``, with the tasks that it waits for.
struct OwnThreadTrait: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(OwnThread()) { try await function() }
  }
}

extension Trait where Self == OwnThreadTrait {
  static var ownThread: Self { Self() }
}
