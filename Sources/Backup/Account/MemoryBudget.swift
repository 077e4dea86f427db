internal import Synchronization
internal import XRPC

/// The memory that all transfers together may fill with blobs that are not in an archive yet.
///
/// 1. Whoever holds a claim that was granted can come to his end: a claim is for everything that he will need.
/// 2. Claims are granted in the order they were made.
public final class MemoryBudget: Sendable {
  /// A part of the memory, for one transfer.
  final class Claim: Sendable {
    fileprivate let size: Int
    fileprivate let isGranted = Atomic<Bool>(false)

    fileprivate init(size: Int) { self.size = size }
  }

  private struct State {
    var available: Int
    var waiting: [(claim: Claim, transfer: any Transfer)] = []
  }

  private let size: Int
  private let state: Mutex<State>

  /// A budget of this many bytes.
  public init(_ size: Int) {
    self.size = size
    state = Mutex(State(available: size))
  }

  /// Claims memory.
  ///
  /// - Returns: a claim, for ``isGranted(_:)``; if it is not granted yet, the transfer is resumed when it is.
  func claim(_ size: Int, for transfer: any Transfer) -> Claim {
    // What is larger than the whole is granted when nobody else has any.
    let claim = Claim(size: min(size, self.size))
    state.withLock { state in
      if state.waiting.isEmpty, state.available >= claim.size {
        state.available -= claim.size
        claim.isGranted.store(true, ordering: .releasing)
      } else {
        state.waiting.append((claim, transfer))
      }
    }
    return claim
  }

  /// Whether the memory may be used.
  func isGranted(_ claim: Claim) -> Bool { claim.isGranted.load(ordering: .acquiring) }

  /// Gives memory back, or a claim up that was not granted.
  func release(_ claim: Claim) {
    let granted = state.withLock { state in
      if claim.isGranted.load(ordering: .acquiring) {
        state.available += claim.size
      } else {
        state.waiting.removeAll { $0.claim === claim }
      }
      var granted: [any Transfer] = []
      while let next = state.waiting.first, next.claim.size <= state.available {
        state.available -= next.claim.size
        next.claim.isGranted.store(true, ordering: .releasing)
        granted.append(next.transfer)
        state.waiting.removeFirst()
      }
      return granted
    }
    for transfer in granted { transfer.resume() }
  }
}
