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
