internal import Dispatch
internal import Synchronization

/// A piece of work on another thread, whose result is asked for later.
package final class Meanwhile<Value: Sendable>: Sendable {
  private let result = Mutex<Value?>(nil)
  private let group = DispatchGroup()

  /// Begins the work.
  package init(_ work: @escaping @Sendable () -> Value) {
    group.enter()
    DispatchQueue.global().async { [self] in
      let value = work()
      result.withLock { $0 = value }
      group.leave()
    }
  }

  /// What came of it; waits until it is done.
  package var value: Value {
    group.wait()
    return result.withLock { value in
      guard let value else { preconditionFailure("the work is done and has no result") }
      return value
    }
  }
}
