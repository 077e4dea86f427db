import NIOPosix
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The threads that read archives for answers, and on which jobs run that take long: opening
/// archives, laying repositories out, hashing blobs.
///
/// The tasks of the process share as few threads as there are processors. What blocks one of those,
/// or computes for seconds on it, holds up every connection. What only reads runs as a step of its
/// task here (`withTaskExecutorPreference`).
///
/// 1. At most `limit` jobs run at a time, and as many threads again take steps in the meantime.
/// 2. A key has one job at a time: all who ask for it meanwhile wait for that one, and get its
///    result.
/// 3. At most `queueLimit` jobs wait, and begin in the order in which they came. One more is
///    refused with ``Busy``, after those have been dropped for which no client waits any more.
/// 4. A job that had to wait and for which no client waits when its turn comes is not begun. One
///    that was begun is done to its end.
final class WorkThreads: TaskExecutor {
  /// As many jobs wait as may, or no client waited for this one any more.
  struct Busy: Error {}

  /// How many jobs run and wait now; how many were refused, and dropped, so far.
  struct Counts: Sendable {
    var running = 0
    var waiting = 0
    var refused: UInt64 = 0
    var abandoned: UInt64 = 0
  }

  private typealias Waiter = (
    client: ClientConnection?, continuation: CheckedContinuation<any Sendable, any Error>
  )

  private struct Job {
    let work: @Sendable () throws -> any Sendable
    var waiters: [Waiter] = []
  }

  private struct State {
    /// Those that wait or run, by their keys.
    var jobs: [String: Job] = [:]
    /// The keys of those that wait, the oldest first.
    var queue: [String] = []
    var counts = Counts()

    /// Drops the jobs that wait and for which no client does; returns who had asked for them.
    mutating func dropUnwanted() -> [Waiter] {
      let unwanted = queue.filter { key in
        jobs[key]?.waiters.allSatisfy { $0.client?.isGone ?? false } ?? true
      }
      queue.removeAll { unwanted.contains($0) }
      counts.abandoned += UInt64(unwanted.count)
      return unwanted.flatMap { jobs.removeValue(forKey: $0)?.waiters ?? [] }
    }
  }

  private let limit, queueLimit: Int
  private let threads: NIOThreadPool
  private let state = Mutex(State())

  /// A repository that is laid out takes memory, so few are at a time even on many processors.
  init(
    limit: Int = min(8, max(2, ProcessInfo.processInfo.activeProcessorCount)), queueLimit: Int = 64
  ) {
    (self.limit, self.queueLimit) = (limit, queueLimit)
    threads = NIOThreadPool(numberOfThreads: 2 * limit)
    threads.start()
  }

  /// How many jobs there are now.
  var counts: Counts {
    state.withLock { state in
      state.counts.waiting = state.queue.count
      return state.counts
    }
  }

  /// Runs a step of a task.
  func enqueue(_ step: consuming ExecutorJob) {
    let step = UnownedJob(step)
    threads.submit { _ in unsafe step.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Returns the result of a job, which may block.
  ///
  /// - Parameters:
  ///   - key: what is the same for all who ask for the same, with a result of the same type.
  ///   - work: the job, if there is none of that key.
  /// - Throws: ``Busy`` if it was not begun; what `work` throws.
  func run<Value: Sendable>(_ key: String, _ work: @escaping @Sendable () throws -> Value)
    async throws -> Value
  {
    let client = ClientConnection.ofTask
    let value = try await withCheckedThrowingContinuation { continuation in
      add(key, (client, continuation), work)
    }
    guard let value = value as? Value else { preconditionFailure("two results of \(key)") }
    return value
  }

  private func add(
    _ key: String, _ waiter: Waiter, _ work: @escaping @Sendable () throws -> any Sendable
  ) {
    let (isRefused, dropped) = state.withLock { state in
      var dropped: [Waiter] = []
      if state.jobs[key] == nil {
        if state.queue.count >= queueLimit { dropped = state.dropUnwanted() }
        guard state.queue.count < queueLimit else {
          state.counts.refused += 1
          return (true, dropped)
        }
        state.jobs[key] = Job(work: work)
        state.queue.append(key)
      }
      state.jobs[key]?.waiters.append(waiter)
      return (false, dropped)
    }
    for one in dropped + (isRefused ? [waiter] : []) { one.continuation.resume(throwing: Busy()) }
    begin()
  }

  /// Begins the oldest job that waits, if fewer run than may.
  private func begin() {
    let next = state.withLock { state -> (String, Job)? in
      guard state.counts.running < limit, let key = state.queue.first, let job = state.jobs[key]
      else { return nil }
      state.queue.removeFirst()
      state.counts.running += 1
      return (key, job)
    }
    guard let (key, job) = next else { return }
    threads.submit { [self] _ in
      let result = Result { try job.work() }
      let (waiters, dropped) = state.withLock { state in
        state.counts.running -= 1
        return (state.jobs.removeValue(forKey: key)?.waiters ?? [], state.dropUnwanted())
      }
      for one in waiters { one.continuation.resume(with: result) }
      for one in dropped { one.continuation.resume(throwing: Busy()) }
      begin()
    }
  }
}
