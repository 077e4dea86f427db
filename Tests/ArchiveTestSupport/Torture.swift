import Foundation
package import TestSupport

/// How long the suites that disturb archives go on.
///
/// `make test` has the same few rounds every time. `make torture` sets `CARPACK_TORTURE` to a
/// number of seconds, for which all suites together make new ones. Each round has a seed of its
/// own; whatever is recorded about a round names it, and `CARPACK_SEED` has it again, as the first
/// round of every suite.
package enum Torture {
  /// How many tests share the time, each case of those that have several counted; each is given as
  /// much of it as the cores can spare.
  private static let testCount = 25.0

  /// How long all of them together go on; nil for the few rounds of every day.
  package static let seconds: Double? =
    ProcessInfo.processInfo.environment["CARPACK_TORTURE"].flatMap(Double.init)

  private static let share: Double? = seconds.map { seconds in
    seconds * min(1, Double(ProcessInfo.processInfo.activeProcessorCount) / testCount)
  }

  /// The seeds of a test's rounds: this many of every day, or new ones until the time is up.
  package static func rounds(_ few: Int, from seed: UInt64, _ purpose: String = #function)
    -> some Sequence<Round>
  {
    let given = ProcessInfo.processInfo.environment["CARPACK_SEED"].flatMap(UInt64.init)
    let first = given ?? (seconds == nil ? seed : UInt64.random(in: .min ... .max))
    let end = share.map { Date.now.addingTimeInterval($0) }
    print("CARPACK_SEED=\(first) for \(purpose)")
    return sequence(state: 0) { (number: inout Int) -> Round? in
      if let end {
        if number > 0, Date.now > end { return nil }
      } else if number == few {
        return nil
      }
      defer { number += 1 }
      return Round(number: number, random: SeededGenerator(seed: first &+ UInt64(number)))
    }
  }

  /// Keeps a file to look at, in the folder that `CARPACK_KEEP` names.
  package static func keep(_ bytes: [UInt8], _ name: String) throws {
    guard let folder = ProcessInfo.processInfo.environment["CARPACK_KEEP"] else { return }
    try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
  }

  /// Says what a test did, for the reader of the output of `make test`.
  package static func report(counts: String, _ purpose: String = #function) {
    print("torture: \(purpose.filter { $0 != "`" }): \(counts)")
  }
}

/// One round, and the random numbers it has.
package struct Round: CustomStringConvertible {
  /// Its number, from 0.
  package let number: Int
  /// Its random numbers.
  package var random: SeededGenerator
  /// How to have it again.
  package var description: String { "\(random)" }
}
