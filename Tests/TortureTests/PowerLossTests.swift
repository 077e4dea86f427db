import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@Suite struct `An archive whose machine loses power` {
  @Test(arguments: ScenarioKind.all)
  func `is the old one or the new one, whatever had got to the disk between any two operations`(
    kind: ScenarioKind
  ) throws {
    let shape = kind.shape
    let seal = kind.isSealed ? try TestSeal() : nil
    let image = try ArchiveImage()
    var counts = Counts()
    for var round in Torture.rounds(1, from: 0x9055_0000) {
      let scenario = try shape.scenario(using: &round.random, image, seal: seal)
      var aftermath = Aftermath(scenario, image)
      for index in shape.disturbed(scenario) {
        // From the n-th operation on, there is no machine any more.
        for number in 1...scenario.operationCounts[index] + 1 {
          do {
            _ = try aftermath.disturb(
              index, StorageFault(number, .forEver), losses: shape == .large ? 4 : 10,
              using: &round.random)
          } catch {
            Issue.record(
              "\(round), \(kind.testDescription), step \(index), before operation \(number): \(error)"
            )
          }
        }
      }
      try aftermath.checkIndependently()
      counts.add(aftermath)
    }
    Torture.report(counts: "\(kind.testDescription): \(counts)")
    #expect(counts.losses > 100)
  }

  @Test(arguments: [false, true])
  func `keeps what was committed, however often the power goes, and takes over what is whole`(
    isSealed: Bool
  ) throws {
    let seal = isSealed ? try TestSeal() : nil
    let image = try ArchiveImage()
    var counts = Counts()
    for var round in Torture.rounds(isSealed ? 8 : 4, from: 0x9056_0000) {
      let scenario = try Shape.several.scenario(using: &round.random, image, seal: seal)
      var aftermath = Aftermath(scenario, image)
      // The same file through all of it.
      var storage = MemoryStorage()
      var promised: CommittedState?
      do {
        for index in scenario.steps.indices {
          var step = scenario.steps[index]
          for _ in 0..<Int.random(in: 1...6, using: &round.random) {
            let count = scenario.operationCounts[index] + 5
            let fault = StorageFault(Int.random(in: 1...count, using: &round.random), .forEver)
            let floor = scenario.floor(after: promised)
            storage = storage.surviving(
              PowerLoss(using: &round.random), .init([fault], floor: floor))
            (promised, _) = try aftermath.perform(
              // What is left of an archive in which nothing is committed takes long to look
              // through.
              step, on: storage, after: promised, losses: promised == nil ? 0 : 4,
              using: &round.random)
            step = step.again(using: &round.random)
          }
          storage = storage.surviving(PowerLoss(using: &round.random))
          promised = try aftermath.performAgain(
            step, on: storage, after: promised, using: &round.random)
        }
      } catch {
        Issue.record("\(round): \(error)")
      }
      try aftermath.checkIndependently()
      counts.add(aftermath)
    }
    Torture.report(counts: "\(counts)")
    #expect(counts.losses > (isSealed ? 50 : 100) && counts.adopted > (isSealed ? 0 : 10))
  }
}
