import Dispatch
import Testing

@testable import IPLD

@Suite struct `A result that is waited for` {
  private struct Late: Error {}

  @Test func `is what was given first`() async throws {
    let awaited = Awaited<Int>()
    #expect(awaited.given == nil)
    let value = try await awaited.value(within: .seconds(60), else: Late()) {
      DispatchQueue(label: "work").async {
        awaited.give(.success(1))
        awaited.give(.success(2))
      }
    }
    #expect(value == 1)
    #expect(awaited.given != nil)
  }

  @Test func `may be there before anyone waits`() async throws {
    let awaited = Awaited<Int>()
    awaited.give(.success(1))
    #expect(try await awaited.value(within: .zero, else: Late()) {} == 1)
  }

  @Test(.timeLimit(.minutes(15))) func `is an error when time is over, though the work goes on`()
    async throws
  {
    let awaited = Awaited<Int>()
    let isOver = DispatchSemaphore(value: 0)
    await #expect(throws: Late.self) {
      try await awaited.value(within: .milliseconds(50), else: Late()) {
        DispatchQueue(label: "work").async {
          isOver.wait()
          awaited.give(.success(1))
        }
      }
    }
    isOver.signal()
  }

  @Test(.timeLimit(.minutes(15))) func `is an error when the task is cancelled, before or after`()
    async throws
  {
    let (waits, isWaiting) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      try await Awaited<Int>().value(within: .seconds(3600), else: Late()) { isWaiting.finish() }
    }
    for await _ in waits {}
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let cancelled = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await Awaited<Int>().value(within: .seconds(3600), else: Late()) {}
    }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }
}
