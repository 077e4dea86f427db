internal import Dispatch
internal import LibC
internal import Synchronization

/// Work on several cores, for which the caller waits.
package enum Parallel {
  /// How many processors are there to be used: `sysconf` with `_SC_NPROCESSORS_ONLN`.
  package static var processorCount: Int { max(1, Int(sysconf(CInt(_SC_NPROCESSORS_ONLN)))) }

  /// Calls `work` with every number below `count`, on as many threads as there are cores, or in
  /// turn if there is one worker.
  ///
  /// What `work` shares between calls, it guards itself.
  package static func perform(_ count: Int, workers: Int, _ work: @Sendable (Int) -> Void) {
    run(count, threads: min(workers, count), beside: {}, work)
  }

  /// Calls `work` with every number below `count` in the same way, and returns what it returned.
  ///
  /// - Throws: what the first call threw that did.
  package static func map<Value: Sendable>(
    _ count: Int, workers: Int, _ work: @Sendable (Int) throws -> Value
  ) throws -> [Value] {
    let values = Mutex([Value?](repeating: nil, count: count))
    let failure = Mutex<(any Error)?>(nil)
    perform(count, workers: workers) { number in
      do {
        let value = try work(number)
        values.withLock { $0[number] = value }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    return values.withLock { $0.compactMap(\.self) }
  }

  /// Does the same, and meanwhile calls `own` once, on one of the threads: for what has to be done
  /// in order.
  package static func perform(
    _ count: Int, workers: Int, beside own: () -> Void, _ work: @Sendable (Int) -> Void
  ) {
    run(count, threads: min(workers, count + 1), beside: own, work)
  }

  private static func run(
    _ count: Int, threads: Int, beside own: () -> Void, _ work: @Sendable (Int) -> Void
  ) {
    if threads <= 1 {
      own()
      for index in 0..<count { work(index) }
      return
    }
    // Each worker takes the next number when it is done with one, so that items of unequal size do
    // not leave a core idle.
    let next = Counter()
    let stopping = Stopping.current
    // The check behind withoutActuallyEscaping holds the length of this file's path, also where the
    // path itself is left out of the build (-file-prefix-map). Under a name without a folder, the
    // same source gives the same bytes wherever it is built.
    #sourceLocation(file:"ConcurrentPerform.swift",line:43)
    withoutActuallyEscaping(own) { own in
      // One thread calls it, while this one waits: nothing that it touches is touched by two.
      nonisolated(unsafe) let own = own
      DispatchQueue.concurrentPerform(iterations: threads) { thread in
        Stopping.passing(stopping) {
          if thread == 0 { unsafe own() }
          while let index = next.take(below: count) { work(index) }
        }
      }
    }
    #sourceLocation()
  }
}
