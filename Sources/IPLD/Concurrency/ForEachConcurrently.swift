/// Calls `body` with each item, this many at a time, in the order of the items as far as there is
/// one.
///
/// - Throws: what `body` throws first; `CancellationError`. No further item is begun then.
package func forEachConcurrently<Item: Sendable>(
  _ items: [Item], atATime count: Int, _ body: @escaping @Sendable (Item) async throws -> Void
) async throws {
  let next = Counter()
  try await withThrowingTaskGroup(of: Void.self) { group in
    for _ in 0..<min(count, items.count) {
      group.addTask {
        while let index = next.take(below: items.count) {
          try Task.checkCancellation()
          try await body(items[index])
        }
      }
    }
    try await group.waitForAll()
  }
}
