import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@Suite struct `An archive whose storage fails` {
  /// What is made to fail: some kinds of operation, once or for ever, with some of a write done or none.
  struct Kind: CustomTestStringConvertible {
    let operations: Set<StorageOperation>
    let duration: StorageFault.Duration
    let code: CInt
    let part: Double

    static let all: [Kind] = [
      Kind(operations: .every, duration: .once, code: StorageFault.inputOutput, part: 0),
      Kind(operations: .every, duration: .forEver, code: StorageFault.inputOutput, part: 0.5),
      Kind(operations: [.write], duration: .once, code: StorageFault.inputOutput, part: 1),
      Kind(operations: [.write], duration: .forEver, code: StorageFault.noSpace, part: 0.3),
      Kind(
        operations: [.write, .synchronize, .truncate], duration: .forEver, code: 30, part: 0.9),
    ]

    func fault(_ number: Int) -> StorageFault {
      StorageFault(number, of: operations, duration, code: code, part: part)
    }

    var testDescription: String { fault(1).description }
  }

  @Test(arguments: Kind.all)
  func `is the old one or the new one, whichever operation fails`(kind: Kind) throws {
    let image = try ArchiveImage()
    var (faults, losses) = (0, 0)
    for var round in Torture.rounds(1, from: 0xfa01_0000) {
      let scenario = try Scenario([.small(using: &round.random)], using: image)
      var aftermath = Aftermath(scenario, image)
      for index in scenario.steps.indices {
        for temper in [BackupAttempt.Temper.meek, .stubborn] {
          var number = 0
          var storage: MemoryStorage
          repeat {
            number += 1
            storage = scenario.storage(before: index, [kind.fault(number)])
            let attempt = scenario.run(index, on: storage, temper)
            do {
              try aftermath.check(index, storage, attempt, using: &round.random)
            } catch {
              Issue.record("\(round), step \(index), \(temper), \(kind.fault(number)): \(error)")
            }
          } while storage.failureCount > 0
          #expect(number > 1)
        }
      }
      faults += aftermath.faultCount
      losses += aftermath.lossCount
    }
    Torture.report(
      counts: "\(faults) faults injected, and the power lost \(losses) times after them")
    #expect(faults > 10)
  }

  @Test func `is the old one or the new one, at whichever byte the disk is full`() throws {
    let image = try ArchiveImage()
    var faults = 0
    for var round in Torture.rounds(1, from: 0xfa02_0000) {
      let scenario = try Scenario([.small(using: &round.random, large: 66_000)], using: image)
      var aftermath = Aftermath(scenario, image)
      for index in scenario.steps.indices {
        let first = scenario.state(before: index)?.bytes.count ?? 0
        let last = try #require(scenario.commits[index].last).bytes.count
        // Every byte where a frame may end or a footer be, and steps through what is alike.
        var capacity = first
        while capacity <= last {
          let storage = scenario.storage(before: index, capacity: UInt64(capacity))
          let temper: BackupAttempt.Temper = capacity % 2 == 0 ? .meek : .stubborn
          let attempt = scenario.run(index, on: storage, temper)
          do {
            try aftermath.check(index, storage, attempt, using: &round.random, losses: 1)
            if capacity == last, storage.failureCount > 0 { throw Unexpected("there is room") }
          } catch {
            Issue.record("\(round), step \(index), \(temper), \(capacity) bytes: \(error)")
          }
          let isNearEnd = capacity < first + 200 || capacity > last - 600
          capacity +=
            isNearEnd ? 1 : min(Int.random(in: 1...997, using: &round.random), last - capacity)
        }
      }
      faults += aftermath.faultCount
    }
    Torture.report(counts: "\(faults) writes found no room")
    #expect(faults > 500)
  }
}
