import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@Suite struct `An archive whose machine loses power` {
  @Test
  func `is the old one or the new one, whatever had got to the disk between any two operations`()
    throws
  {
    let image = try ArchiveImage()
    var losses = 0
    for var round in Torture.rounds(2, from: 0x9055_0000) {
      let scenario = try Scenario([.small(using: &round.random)], using: image)
      var aftermath = Aftermath(scenario, image)
      for index in scenario.steps.indices {
        // From the n-th operation on, there is no machine any more.
        for number in 1...scenario.operationCounts[index] + 1 {
          let fault = StorageFault(number, .forEver)
          let storage = scenario.storage(before: index, [fault])
          let attempt = scenario.run(index, on: storage)
          do {
            try aftermath.check(index, storage, attempt, using: &round.random, losses: 12)
          } catch {
            Issue.record("\(round), step \(index), before operation \(number): \(error)")
          }
        }
      }
      losses += aftermath.lossCount
    }
    Torture.report(counts: "the power lost \(losses) times")
    #expect(losses > 100)
  }

}
