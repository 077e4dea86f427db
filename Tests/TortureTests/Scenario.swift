import Archive
import ArchiveTestSupport
import IPLD
import TestSupport

/// Backups one after another into one file, and every state that the file is in after a commit if nothing disturbs them.
struct Scenario {
  let header: [UInt8] = [1, 0xa0]
  let steps: [BackupStep]
  /// The states that each step commits, the last one when it is complete.
  private(set) var commits: [[CommittedState]] = []
  /// How many operations each step asks of its storage.
  private(set) var operationCounts: [Int] = []

  /// Runs the steps without any disturbance.
  ///
  /// - Throws: if that does not go well, or does not give back what was put in.
  init(_ steps: [BackupStep], using image: ArchiveImage) throws {
    self.steps = steps
    var file: [UInt8] = []
    var sections: [Block] = []
    var known = Set<CID>()
    for index in steps.indices {
      let storage = MemoryStorage(file, .init(floor: UInt64(file.count)))
      let attempt = run(index, on: storage)
      guard attempt.isCommitted else { throw Unexpected("step \(index): \(attempt.errors)") }
      let before = file
      file = storage.bytes
      guard file.starts(with: before) else { throw Unexpected("step \(index) changed old bytes") }
      commits.append(
        try attempt.acknowledged.map { try CommittedState($0.generation, in: file, using: image) })
      operationCounts.append(storage.count())
      sections += steps[index].sections.filter { known.insert($0.cid).inserted }
      let expected = ArchiveContents(
        header: header, sections: sections, head: steps[index].manifest?.cid)
      guard let last = commits[index].last, last.bytes.count == file.count else {
        throw Unexpected("step \(index): something follows the footer")
      }
      if let difference = expected.difference(from: last.contents) {
        throw Unexpected("step \(index): \(difference)")
      }
    }
  }

  /// Performs a step on a storage.
  func run(_ index: Int, on storage: MemoryStorage, _ temper: BackupAttempt.Temper = .meek)
    -> BackupAttempt
  {
    BackupAttempt(steps[index], on: storage, header: header, temper: temper)
  }

  /// A storage as it is before a step.
  func storage(before index: Int, _ faults: [StorageFault] = [], capacity: UInt64 = .max)
    -> MemoryStorage
  {
    let file = state(before: index)?.bytes ?? []
    return MemoryStorage(
      file, .init(faults, capacity: capacity, floor: UInt64(file.count)))
  }

  /// The state before a step; nil before the first.
  func state(before index: Int) -> CommittedState? { index > 0 ? commits[index - 1].last : nil }

  /// Everything that any step appends.
  var sections: [Block] { steps.flatMap(\.sections) }
}

/// Something that no fault explains.
struct Unexpected: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
