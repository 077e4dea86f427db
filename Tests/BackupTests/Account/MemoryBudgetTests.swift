import TestSupport
import Testing
import XRPC

@testable import Backup

@Suite struct `A budget of memory` {
  @Test func `is granted as far as it goes, and then to whoever asked first`() {
    let budget = MemoryBudget(100)
    let transfers = (0..<4).map { _ in CountingTransfer() }
    let first = budget.claim(60, for: transfers[0])
    let second = budget.claim(50, for: transfers[1])
    let third = budget.claim(10, for: transfers[2])
    #expect(budget.isGranted(first))
    #expect(!budget.isGranted(second))
    // There would be room for it, but it would keep the second waiting for ever.
    #expect(!budget.isGranted(third))
    budget.release(first)
    #expect(budget.isGranted(second) && budget.isGranted(third))
    #expect(transfers.map(\.resumeCount) == [0, 1, 1, 0])
    let fourth = budget.claim(40, for: transfers[3])
    #expect(budget.isGranted(fourth))
    let fifth = budget.claim(1, for: transfers[3])
    #expect(!budget.isGranted(fifth))
  }

  @Test func `goes on to the next when somebody gives up waiting`() {
    let budget = MemoryBudget(100)
    let transfers = (0..<3).map { _ in CountingTransfer() }
    let held = budget.claim(80, for: transfers[0])
    let large = budget.claim(90, for: transfers[1])
    let small = budget.claim(20, for: transfers[2])
    #expect(!budget.isGranted(small))
    budget.release(large)
    #expect(budget.isGranted(small))
    #expect(transfers.map(\.resumeCount) == [0, 0, 1])
    budget.release(held)
    budget.release(small)
    #expect(budget.isGranted(budget.claim(100, for: transfers[0])))
  }

  @Test func `gives to a claim that is larger than all of it what there is`() {
    let budget = MemoryBudget(100)
    let transfer = CountingTransfer()
    let small = budget.claim(1, for: transfer)
    let large = budget.claim(1000, for: transfer)
    #expect(!budget.isGranted(large))
    budget.release(small)
    #expect(budget.isGranted(large))
    #expect(!budget.isGranted(budget.claim(1, for: transfer)))
    #expect(transfer.resumeCount == 1)
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func `is whole again when all have given back what they had`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let budget = MemoryBudget(1000)
    var claims: [MemoryBudget.Claim] = []
    let transfer = CountingTransfer()
    for _ in 0..<2000 {
      if Bool.random(using: &generator), !claims.isEmpty {
        budget.release(claims.remove(at: .random(in: 0..<claims.count, using: &generator)))
      } else {
        claims.append(budget.claim(.random(in: 0...1200, using: &generator), for: transfer))
      }
      // Somebody has some of it as long as somebody wants some.
      #expect(claims.isEmpty || claims.contains { budget.isGranted($0) })
    }
    for claim in claims { budget.release(claim) }
    #expect(budget.isGranted(budget.claim(1000, for: transfer)))
  }
}
