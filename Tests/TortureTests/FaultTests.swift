import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@Suite struct `An archive whose storage fails` {
  /// What is made to fail: some kinds of operation, once or for ever, with some of a write done or
  /// none.
  private static let kinds: [@Sendable (Int) -> StorageFault] = [
    { StorageFault($0) },
    { StorageFault($0, .forEver, part: 0.5) },
    { StorageFault($0, of: [.write], part: 1) },
    { StorageFault($0, of: [.write], .forEver, code: StorageFault.noSpace, part: 0.3) },
    { StorageFault($0, of: [.write, .synchronize, .truncate], .forEver, code: 30, part: 0.9) },
  ]

  /// How many operations fail if it goes wrong every time, so that it does not go on for ever.
  private static let patience = 100

  @Test(arguments: ScenarioKind.all)
  func `is the old one or the new one, whichever operation fails, and the next backup succeeds`(
    scenarioKind: ScenarioKind
  ) throws {
    let shape = scenarioKind.shape
    let seal = scenarioKind.isSealed ? try TestSeal() : nil
    let image = try ArchiveImage()
    var counts = Counts()
    for var round in Torture.rounds(1, from: 0xfa01_0000) {
      let scenario = try shape.scenario(using: &round.random, image, seal: seal)
      var aftermath = Aftermath(scenario, image)
      for index in shape.disturbed(scenario) {
        // The first of them and one other, which all have their turn in; `make torture` has all,
        // except for what takes longest.
        let isBrief = Torture.seconds == nil || shape == .large
        let kinds =
          isBrief ? [0, 1 + (round.number + index) % 4] : Array(Self.kinds.indices)
        for kind in kinds {
          let fault = Self.kinds[kind]
          let temper: BackupAttempt.Temper = kind % 2 == 0 ? .meek : .stubborn
          // For n = 1, 2, 3 … until the step is not disturbed any more.
          var number = 0
          var isDisturbed = true
          while isDisturbed {
            number += 1
            let fault = fault(number)
            do {
              isDisturbed = try aftermath.disturb(
                index, fault, temper, losses: 1, using: &round.random)
            } catch {
              Issue.record(
                "\(round), \(scenarioKind.testDescription), step \(index), \(temper), \(fault): \(error)"
              )
              isDisturbed = number < Self.patience
            }
          }
          #expect(number > 3)
        }
      }
      try aftermath.checkIndependently()
      counts.add(aftermath)
    }
    Torture.report(counts: "\(scenarioKind.testDescription): \(counts)")
    #expect(counts.faults > 60 && counts.recoveries > counts.faults / 3)
  }

  @Test(arguments: [false, true])
  func `is the old one or the new one, also when recovering from a failure fails`(
    isSealed: Bool
  ) throws {
    let seal = isSealed ? try TestSeal() : nil
    let image = try ArchiveImage()
    var counts = Counts()
    for var round in Torture.rounds(1, from: 0xfa03_0000) {
      let shape = Shape.several
      let scenario = try shape.scenario(using: &round.random, image, seal: seal)
      var aftermath = Aftermath(scenario, image)
      for index in 0..<2 {
        // Opening a sealed archive takes long.
        let step = Torture.seconds != nil ? 1 : isSealed ? 9 : 3
        for number in stride(from: 1, through: scenario.operationCounts[index], by: step) {
          let first = StorageFault(number, .forEver, part: 0.7)
          var second = 0
          var isDisturbed = true
          while isDisturbed {
            second += 1
            // Every operation of the recovery, of a file that was left each of these ways.
            let fault = StorageFault(second, second % 2 == 0 ? .once : .forEver, part: 0.4)
            do {
              isDisturbed = try aftermath.disturb(
                index, first, then: fault, using: &round.random)
            } catch {
              Issue.record("\(round), step \(index), \(first), then \(fault): \(error)")
              isDisturbed = second < Self.patience
            }
          }
        }
      }
      try aftermath.checkIndependently()
      counts.add(aftermath)
    }
    Torture.report(counts: "\(counts)")
    #expect(counts.faults > (isSealed ? 100 : 300) && counts.adopted > 10)
  }

  @Test(arguments: [false, true])
  func `is the old one or the new one, at whichever byte the disk is full`(
    isSealed: Bool
  ) throws {
    let seal = isSealed ? try TestSeal() : nil
    let image = try ArchiveImage()
    var counts = Counts()
    for var round in Torture.rounds(1, from: 0xfa02_0000) {
      let scenario = try Shape.several.scenario(using: &round.random, image, seal: seal)
      var aftermath = Aftermath(scenario, image)
      for index in scenario.steps.indices {
        let first = scenario.file(before: index).count
        let last = scenario.file(after: index).count
        // Every byte where a frame may begin or a footer be, and steps through what is alike.
        var capacity = first
        while capacity <= last {
          let storage = scenario.storage(before: index, capacity: UInt64(capacity))
          let temper: BackupAttempt.Temper = capacity % 2 == 0 ? .meek : .stubborn
          do {
            let step = scenario.steps[index]
            let (promised, _) = try aftermath.perform(
              step, on: storage, after: scenario.state(before: index), temper, losses: 0,
              using: &round.random)
            if capacity == last, storage.failureCount > 0 { throw Unexpected("there is room") }
            // Somebody makes room.
            if capacity % 8 == 0 {
              try aftermath.performAgain(
                step, on: storage, after: promised, using: &round.random)
            }
          } catch {
            Issue.record("\(round), step \(index), \(temper), \(capacity) bytes: \(error)")
          }
          let isNearEdge = capacity < first + 100 || capacity > last - 400
          let stride =
            isNearEdge
            ? isSealed ? 9 : 1 : Int.random(in: 1...(isSealed ? 9999 : 1999), using: &round.random)
          capacity = capacity == last ? last + 1 : min(capacity + stride, last)
        }
      }
      try aftermath.checkIndependently()
      counts.add(aftermath)
    }
    Torture.report(counts: "\(counts)")
    #expect(counts.faults > (isSealed ? 40 : 300))
  }
}
