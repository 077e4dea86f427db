internal import Synchronization

/// The memory that all transfers together may fill with blobs that are not in an archive yet.
///
/// It is taken as bytes come. A blob that gets none goes on in a file, so that none waits for
/// another.
package final class MemoryBudget: Sendable {
  private let available: Atomic<Int>

  /// A budget of this many bytes.
  package init(_ size: Int) { available = Atomic(size) }

  /// Takes so many bytes, or none.
  func take(_ count: Int) -> Bool {
    if available.subtract(count, ordering: .relaxed).newValue >= 0 { return true }
    giveBack(count)
    return false
  }

  /// Gives bytes back.
  func giveBack(_ count: Int) { available.add(count, ordering: .relaxed) }
}
