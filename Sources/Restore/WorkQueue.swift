internal import Synchronization

/// Things to do that several tasks take from, each once.
final class WorkQueue<Item: Sendable>: Sendable {
  private let items: Mutex<ArraySlice<Item>>

  init(_ items: [Item]) { self.items = Mutex(items[...]) }

  /// The next; nil at the end.
  func take() -> Item? { items.withLock { $0.popFirst() } }

  /// Does something with each, so many at a time.
  ///
  /// - Throws: what `body` throws first; `CancellationError`.
  func forEach(atATime count: Int, _ body: @escaping @Sendable (Item) async throws -> Void)
    async throws
  {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<count {
        group.addTask { [self] in
          while let item = take() {
            try Task.checkCancellation()
            try await body(item)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
