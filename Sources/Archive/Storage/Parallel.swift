internal import Dispatch

/// The same work on many items, on several cores.
package enum Parallel {
  /// Calls `work` with every number below `count`, on as many threads as there are cores, or in turn if there is one worker.
  ///
  /// What `work` shares between calls, it guards itself.
  package static func perform(_ count: Int, workers: Int, _ work: @Sendable (Int) -> Void) {
    if workers <= 1 || count <= 1 {
      for index in 0..<count { work(index) }
      return
    }
    // Each worker takes the next number when it is done with one, so that items of unequal size do not leave a core idle.
    let next = Counter()
    DispatchQueue.concurrentPerform(iterations: min(workers, count)) { _ in
      while let index = next.take(below: count) { work(index) }
    }
  }
}
