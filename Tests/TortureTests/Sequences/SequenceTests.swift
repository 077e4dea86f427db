import ArchiveTestSupport
import Foundation
import TestSupport
import Testing

@Suite struct `An archive to which one thing after the other happens` {
  /// Kinds of steps that are not among those that every change has to pass, and why.
  private static let leftOut: [SequenceStep: String] = [:]

  /// Sequences that fail and are waited for, by their seeds, and what is wrong.
  ///
  /// They are run, and said to be known.
  private static let unmended: [UInt64: String] = [
    1_586_495_961:
      "repair heals more the second time, of a protected archive of which two ranges are exchanged",
    1_586_495_964:
      "repair -o does not list the first of glued archives if its end and the header behind are lost",
  ]

  /// The kinds of steps there are: all but those, or the ones that `CARPACK_STEPS` names.
  private static var steps: [SequenceStep] {
    let named = ProcessInfo.processInfo.environment["CARPACK_STEPS"]?.split(separator: " ")
    return SequenceStep.allCases.filter { step in
      named?.contains { $0 == step.rawValue } ?? (leftOut[step] == nil)
    }
  }

  /// How many sequences there are: so many every day, or as many as `CARPACK_SEQUENCES` says.
  private static var count: Int {
    let environment = ProcessInfo.processInfo.environment
    let given = environment["CARPACK_SEQUENCES"].flatMap(Int.init)
    return given ?? (environment["CARPACK_SEED"] == nil ? 1000 : 1)
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
          let step = SequenceStep.any(of: steps, &archive.random)
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
        if let known = Self.unmended[round.random.seed], steps == SequenceStep.allCases {
          withKnownIssue(Comment(rawValue: known)) { Issue.record(Comment(rawValue: words)) }
        } else {
          Issue.record(Comment(rawValue: words))
        }
      }
      counts.merge(archive.counts, uniquingKeysWith: +)
      counts["sequences", default: 0] += 1
    }
    let list = counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
    Torture.report(counts: list.joined(separator: ", "))
    #expect(counts["sequences"] ?? 0 > 0)
  }
}
