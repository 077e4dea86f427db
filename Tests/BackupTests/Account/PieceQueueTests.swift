import Dispatch
import IPLD
import TestSupport
import Testing
import XRPC

@testable import Backup

@Suite(.timeLimit(.minutes(15))) struct `A queue of pieces` {
  private struct Dislike: Error, Equatable {}

  /// Takes everything out, on a thread of its own as the archive's is.
  private func drained(_ queue: PieceQueue) async throws -> (bytes: [UInt8], rounds: Int) {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: "taker").async {
        continuation.resume(
          with: Result {
            var round = try queue.nextRound(after: 0)
            var rounds = 1
            while true {
              var bytes: [UInt8] = []
              taking: while true {
                switch try queue.next(of: round.round) {
                case .piece(let piece): bytes += piece
                case .end: return (bytes, rounds)
                case .restarted: break taking
                }
              }
              round = try queue.nextRound(after: round.round)
              rounds += 1
            }
          })
      }
    }
  }

  private func noise(_ count: Int, _ seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return generator.bytes(count)
  }

  /// Puts bytes in, and waits where there is no room.
  private func put(_ bytes: [UInt8], into queue: PieceQueue, chunk: Int) async throws -> Int {
    let transfer = CountingTransfer()
    var rest = bytes[...]
    var pauses = 0
    while !rest.isEmpty {
      let piece = Array(rest.prefix(chunk))
      let resumed = transfer.resumeCount
      if try queue.put(piece.span, of: transfer) == .proceed {
        rest = rest.dropFirst(piece.count)
      } else {
        pauses += 1
        while transfer.resumeCount == resumed { try await Task.sleep(for: .milliseconds(1)) }
      }
    }
    return pauses
  }

  @Test(arguments: [1, 1000, 16 << 10, 3 << 20])
  func `gives out what was put in, whatever the pieces`(chunk: Int) async throws {
    let bytes = noise(chunk == 1 ? 5000 : 7 << 20)
    let queue = PieceQueue()
    queue.begin(length: UInt64(bytes.count))
    async let taken = drained(queue)
    _ = try await put(bytes, into: queue, chunk: chunk)
    queue.end()
    let (out, rounds) = try await taken
    #expect(out == bytes)
    #expect(rounds == 1)
  }

  @Test func `holds no more than it has room for, and wakes who waits`() async throws {
    let queue = PieceQueue()
    let transfer = CountingTransfer()
    let piece = noise(16 << 10)
    queue.begin(length: 1 << 30)
    var count = 0
    while try queue.put(piece.span, of: transfer) == .proceed { count += piece.count }
    #expect(count >= PieceQueue.capacity && count < PieceQueue.capacity + piece.count)
    #expect(transfer.resumeCount == 0)
    let round = try queue.nextRound(after: 0)
    #expect(round == (1, 1 << 30))
    guard case .piece(let first) = try queue.next(of: 1) else {
      Issue.record("there is a piece")
      return
    }
    #expect(first.count >= 1 << 20)
    #expect(transfer.resumeCount == 1)
    #expect(try queue.put(piece.span, of: transfer) == .proceed)
  }

  @Test func `forgets a round when the next begins`() async throws {
    let queue = PieceQueue()
    let (first, second) = (noise(3 << 20, 1), noise(5 << 20, 2))
    queue.begin(length: UInt64(first.count))
    async let taken = drained(queue)
    _ = try await put(first, into: queue, chunk: 100_000)
    queue.begin(length: UInt64(second.count))
    _ = try await put(second, into: queue, chunk: 100_000)
    queue.end()
    #expect(try await taken.bytes == second)
  }

  @Test func `tells the taker when it is given up, whenever that is`() async throws {
    for puts in [0, 1, 100] {
      let queue = PieceQueue()
      let taken = Task { try await drained(queue).bytes }
      if puts > 0 { queue.begin(length: 10 << 20) }
      for _ in 0..<puts { _ = try queue.put(noise(16 << 10).span, of: CountingTransfer()) }
      queue.abandon()
      await #expect(throws: PieceQueue.Abandoned.self) { try await taken.value }
    }
  }

  @Test func `tells the transfer what the taker did not like, also one that waits`() throws {
    let queue = PieceQueue()
    let transfer = CountingTransfer()
    let piece = noise(1 << 20)
    queue.begin(length: 1 << 30)
    while try queue.put(piece.span, of: transfer) == .proceed {}
    queue.refuse(Dislike())
    #expect(transfer.resumeCount == 1)
    #expect(throws: Dislike()) { try queue.put(piece.span, of: transfer) }
  }

  @Test func `takes everything and keeps nothing once nobody wants it`() throws {
    let queue = PieceQueue()
    let transfer = CountingTransfer()
    let piece = noise(1 << 20)
    queue.begin(length: 1 << 30)
    while try queue.put(piece.span, of: transfer) == .proceed {}
    queue.ignoreRest()
    #expect(transfer.resumeCount == 1)
    for _ in 0..<20 { #expect(try queue.put(piece.span, of: transfer) == .proceed) }
  }
}
