import ArchiveTestSupport
import Foundation
import TestSupport
import Testing

@Suite struct `An archive to which one thing after the other happens` {
  /// The kinds of steps there are: all, or the ones that `CARPACK_STEPS` names.
  private static var steps: [SequenceStep] {
    let named = ProcessInfo.processInfo.environment["CARPACK_STEPS"]?.split(separator: " ")
    return SequenceStep.allCases.filter { step in
      named?.contains { $0 == step.rawValue } ?? true
    }
  }

  /// How many sequences there are: this many every day, or as many as `CARPACK_SEQUENCES` says.
  private static var count: Int {
    let environment = ProcessInfo.processInfo.environment
    let given = environment["CARPACK_SEQUENCES"].flatMap(Int.init)
    return given ?? (environment["CARPACK_SEED"] == nil ? 180 : 1)
  }

  @Test func `gives back what is intact, says what is true of itself, and can be gone on with`()
    throws
  {
    var counts: [String: Int] = [:]
    let steps = Self.steps
    for var round in Torture.rounds(Self.count, from: 0x5e90_0000) {
      let length = 2 + Int(round.random.next() % 5)
      var archive = try SequenceArchive(round.random)
      do {
        for _ in 0..<length {
          let isSealed = archive.seal != nil
          let possible = steps.filter { !isSealed || $0.isForSealed }
          let step = SequenceStep.any(of: possible, &archive.random)
          try Torture.keep(archive.file, "step-\(archive.steps.count).car.zst")
          try archive.perform(step)
        }
        try archive.requireEnd()
      } catch {
        archive.failures.append("\(error)")
      }
      if let failure = archive.failures.last {
        try Torture.keep(archive.file, "sequence.car.zst")
        let words = "\(round): \(failure)\n  \(archive.steps.joined(separator: "\n  "))"
        Issue.record(Comment(rawValue: words))
      }
      counts.merge(archive.counts, uniquingKeysWith: +)
      counts["sequences", default: 0] += 1
    }
    let list = counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
    Torture.report(counts: list.joined(separator: ", "))
    #expect(counts["sequences"] ?? 0 > 0)
  }
}
