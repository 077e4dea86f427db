import Archive
import ArchiveTestSupport
import Copying
import Failures
import IPLD
import Snapshots
import Terminal
import TestSupport

/// Verbs are run, interrupted and run again, and what they leave is examined.
extension SequenceArchive {
  /// A verb that writes to the file: what it says is damaged still; nil if nothing is.
  typealias Change = (any ArchiveStorage) throws -> String?

  /// What became of a run.
  private enum Ending {
    case done(damage: String?)
    case refused(any Error)
    case interrupted(any Error)
  }

  /// Runs a verb that writes to the file; at times it is interrupted, and run again.
  ///
  /// - Parameters:
  ///   - words: What it is.
  ///   - copy: What it may take over.
  ///   - verb: The verb.
  mutating func change(
    _ words: String, from copy: [UInt8]? = nil, _ verb: Change
  ) throws {
    let copy = try copy.map { try SequenceFindings($0, states) }
    let before = file
    let found = try SequenceFindings(before, states, seams: seams)
    if random.next() % 2 == 0 {
      let interruption = SequenceInterruption(&random)
      let storage = MemoryStorage(before, interruption.conditions(before.count))
      let ending = try run(verb, on: storage)
      file = interruption.bytes(in: storage)
      if case .interrupted(let error) = ending {
        steps.append("\(words), interrupted by \(interruption): \(error)")
        counts["interrupted by \(interruption.kind.rawValue)", default: 0] += 1
        if interruption.kind == .fullDisk, (error as? any Explained)?.explanation.status == .damaged
        {
          throw Unexpected("a full disk is called damage: \(error)")
        }
        try requireNothingLost(found, "\(words), interrupted")
        try runAgain(words, from: before, found, copy, verb)
        return
      }
      file = before
    }
    let storage = MemoryStorage(before)
    switch try run(verb, on: storage) {
    case .done(let damage):
      file = storage.bytes
      steps.append(words + (damage.map { ": damaged still: \($0)" } ?? ": done"))
      if storage.bytes(after: .ofEverything) != file {
        failures.append("(R) \(words) ends before all of it is on the medium")
      }
      try require(found, copy, damage: damage, words)
    case .refused(let error), .interrupted(let error):
      file = storage.bytes
      steps.append("\(words): refused: \(error)")
      counts["refused", default: 0] += 1
      try requireNothingLost(found, "\(words), refused")
      // What is repaired in place is refused only if there is nothing whole, or nothing that it
      // understands.
      if words.hasPrefix("repair"), !isGlued, !found.whole.isEmpty {
        throw Unexpected("(P) \(words) refuses an archive with whole snapshots: \(error)")
      }
    }
  }

  private func run(_ verb: Change, on storage: MemoryStorage) throws -> Ending {
    do {
      let damage = try verb(storage.archive())
      return storage.failureCount > 0
        ? .interrupted(Unexpected("it ended well all the same")) : .done(damage: damage)
    } catch let error as MemoryStorage.Misuse {
      throw error
    } catch {
      return storage.failureCount > 0 ? .interrupted(error) : .refused(error)
    }
  }

  /// The same command again, after it was interrupted.
  private mutating func runAgain(
    _ words: String, from before: [UInt8], _ found: SequenceFindings,
    _ copy: SequenceFindings?, _ verb: Change
  ) throws {
    let storage = MemoryStorage(file)
    switch try run(verb, on: storage) {
    case .done(let damage):
      file = storage.bytes
      steps.append("\(words) again" + (damage.map { ": damaged still: \($0)" } ?? ": done"))
      try require(found, copy, damage: damage, "\(words) again")
      if damage != nil, !words.hasPrefix("repair") { return }
      guard let damage, case .done(nil) = try run(verb, on: MemoryStorage(before)) else { return }
      throw Unexpected("(R) \(words) again says \"\(damage)\", and says nothing uninterrupted")
    case .refused(let error), .interrupted(let error):
      file = storage.bytes
      steps.append("\(words) again: refused: \(error)")
      try requireNothingLost(found, "\(words) again, refused")
      // What is refused for another reason than that it was interrupted is not this rule's.
      guard case .done = try run(verb, on: MemoryStorage(before)) else { return }
      try followHint(of: error, words, found, verb)
    }
  }

  /// Follows the hint of the error, and then retries the command.
  private mutating func followHint(
    of error: any Error, _ words: String, _ found: SequenceFindings, _ verb: Change
  ) throws {
    let hint = (error as? any Explained)?.explanation.hint ?? ""
    let isIntoNew = hint.contains("carpack repair -o")
    guard isIntoNew || hint.contains("carpack repair") else {
      throw Unexpected("(R) \(words) again is refused, and no command is named: \(error) (\(hint))")
    }
    var found = found
    if isIntoNew {
      // What is left is in the new file, which has manifests of its own.
      try repairIntoNew()
      found = try SequenceFindings(file, states)
    } else {
      let storage = MemoryStorage(file)
      _ = try ArchiveRepair.repair(storage.archive())
      file = storage.bytes
    }
    steps.append("what the hint says")
    let storage = MemoryStorage(file)
    guard case .done(let damage) = try run(verb, on: storage) else {
      throw Unexpected("(R) \(words) is refused after what its hint says: \(error)")
    }
    file = storage.bytes
    try require(found, damage: damage, "\(words) after what its hint says")
  }
}
