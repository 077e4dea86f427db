import Foundation
import Synchronization

/// The threads on which the server does what takes long: opens archives, lays repositories out,
/// hashes blobs.
///
/// Tasks share as few threads as the machine has processors. What blocks one of those, or computes
/// for seconds on it, holds up every connection.
///
/// 1. At most `limit` pieces of work are done at a time, each on a thread of its own.
/// 2. At most `queueLimit` wait, and begin in the order in which they came. What comes on top of
///    that is refused with ``Busy``, after those have been dropped that nobody waits for any more.
/// 3. Work that had to wait is not begun if nobody waits for it when its turn comes: it ends with
///    ``Abandoned``. Work that was begun is done to its end.
/// 4. Each call of ``run(isWanted:_:)`` ends exactly once.
final class WorkThreads: Sendable {
  /// As much waits as is allowed to.
  struct Busy: Error {}
  /// Whoever asked for the work was gone before it began.
  struct Abandoned: Error {}

  /// How much there is of it.
  struct Counts: Sendable {
    /// What is being done.
    var running = 0
    /// What waits.
    var waiting = 0
    /// What was refused so far, as too much waited.
    var refused: UInt64 = 0
    /// What was not begun so far, as nobody waited for it any more.
    var abandoned: UInt64 = 0
  }

  private struct Waiting {
    let isWanted: @Sendable () -> Bool
    let begin: @Sendable () -> Void
    let end: @Sendable (any Error) -> Void
  }

  private struct State {
    var counts = Counts()
    /// The oldest first; as many as wait.
    var queue: [Waiting] = [] {
      didSet { counts.waiting = queue.count }
    }
  }

  private let limit, queueLimit: Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - limit: how much is done at a time.
  ///   - queueLimit: how much may wait.
  init(limit: Int = usualLimit, queueLimit: Int = 64) {
    (self.limit, self.queueLimit) = (limit, queueLimit)
  }

  /// A repository that is laid out takes memory, so there are few even where there are many
  /// processors.
  private static var usualLimit: Int {
    min(8, max(2, ProcessInfo.processInfo.activeProcessorCount))
  }

  /// How much there is of it now.
  var counts: Counts { state.withLock { $0.counts } }

  /// Does work on one of the threads, and returns what it returns.
  ///
  /// - Parameters:
  ///   - isWanted: whether anybody still waits for it; asked once its turn comes.
  ///   - work: what is to be done; it may block.
  /// - Throws: ``Busy`` if too much waits already; ``Abandoned`` if it was not begun; what `work`
  ///   throws.
  func run<Value: Sendable>(
    isWanted: @escaping @Sendable () -> Bool = { true },
    _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      add(
        Waiting(
          isWanted: isWanted,
          begin: { continuation.resume(with: Result { try work() }) },
          end: { continuation.resume(throwing: $0) }))
    }
  }

  private func add(_ work: Waiting) {
    let (begins, isRefused, dropped) = state.withLock { state in
      if state.counts.running < limit {
        state.counts.running += 1
        return (true, false, [Waiting]())
      }
      var dropped: [Waiting] = []
      if state.queue.count >= queueLimit {
        var wanted: [Waiting] = []
        for one in state.queue {
          if one.isWanted() { wanted.append(one) } else { dropped.append(one) }
        }
        state.queue = wanted
        state.counts.abandoned += UInt64(dropped.count)
      }
      guard state.queue.count < queueLimit else {
        state.counts.refused += 1
        return (false, true, dropped)
      }
      state.queue.append(work)
      return (false, false, dropped)
    }
    for one in dropped { one.end(Abandoned()) }
    if isRefused { work.end(Busy()) }
    guard begins else { return }
    let thread = Thread { [self] in
      work.begin()
      workOff()
    }
    thread.stackSize = 8 << 20
    thread.start()
  }

  /// Does what waits, on this thread, until nothing does.
  private func workOff() {
    while true {
      let next = state.withLock { state -> Waiting? in
        guard state.queue.isEmpty else { return state.queue.removeFirst() }
        state.counts.running -= 1
        return nil
      }
      guard let next else { return }
      if next.isWanted() {
        next.begin()
      } else {
        state.withLock { $0.counts.abandoned += 1 }
        next.end(Abandoned())
      }
    }
  }
}
