internal import Dispatch

/// Work on many items that goes on in other threads; the thread that waits for it does its share.
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
