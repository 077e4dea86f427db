internal import Dispatch
internal import Synchronization

/// Numbers from 0, each given out once, in the order of asking.
final class Counter: Sendable {
  private let next = Atomic<Int>(0)

  /// The next number, or nil when all below `limit` are taken.
  func take(below limit: Int) -> Int? {
    let value = next.wrappingAdd(1, ordering: .relaxed).oldValue
    return value < limit ? value : nil
  }
}

/// Work on many items that runs in other threads; the thread that waits for it does its share.
package final class SharedWork: Sendable {
  private let count: Int
  private let next = Counter()
  private let group = DispatchGroup()
  private let work: @Sendable (Int) -> Void

  /// Begins the work.
  ///
  /// - Parameters:
  ///   - count: how many items there are.
  ///   - helpers: how many threads there are to do it beside the one that waits for it.
  ///   - work: does the item with this number; what it shares between calls, it guards itself.
  package init(_ count: Int, helpers: Int, _ work: @escaping @Sendable (Int) -> Void) {
    (self.count, self.work) = (count, work)
    for _ in 0..<max(0, min(helpers, count)) {
      DispatchQueue.global().async(group: group) { [self] in help() }
    }
  }

  /// Returns when all of it is done.
  package func finish() {
    help()
    group.wait()
  }

  private func help() { while let index = next.take(below: count) { work(index) } }
}

/// A piece of work on another thread, whose result is asked for later.
package final class Meanwhile<Value: Sendable>: Sendable {
  private let result = Mutex<Value?>(nil)
  private let group = DispatchGroup()

  /// Begins the work.
  package init(_ work: @escaping @Sendable () -> Value) {
    let stopping = Stopping.current
    DispatchQueue.global().async(group: group) { [self] in
      let value = Stopping.passing(stopping, to: work)
      result.withLock { $0 = value }
    }
  }

  /// The result; waits until there is one.
  package var value: Value {
    group.wait()
    guard let value = result.withLock({ $0 }) else {
      preconditionFailure("the work is done and has no result")
    }
    return value
  }
}
