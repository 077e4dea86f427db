import Archive
import ArchiveTestSupport
import IPLD
import TestSupport

/// Looks at what a disturbed step left behind: the file has to be as it was, or as it should have become.
struct Aftermath {
  let scenario: Scenario
  let image: ArchiveImage
  /// How many operations were made to fail.
  private(set) var faultCount = 0
  /// How many files were looked at that a loss of power could have left.
  private(set) var lossCount = 0

  init(_ scenario: Scenario, _ image: ArchiveImage) {
    self.scenario = scenario
    self.image = image
  }

  /// Checks everything there is to check after a step.
  ///
  /// - Throws: what must not be.
  mutating func check(
    _ index: Int, _ storage: MemoryStorage, _ attempt: BackupAttempt,
    using random: inout SeededGenerator, losses: Int = 2
  ) throws {
    faultCount += storage.failureCount
    try checkErrors(storage, attempt)
    let before = scenario.state(before: index)
    var states = before.map { [$0] } ?? []
    // What the writer said it had committed is there, and is all it had accepted by then.
    for (generation, count) in attempt.acknowledged {
      states.append(
        try state(generation, in: storage, after: before, attempt.accepted.prefix(count)))
    }
    let old = states.last
    if attempt.isUncertain {
      // As long as the power stays, the file shows what nobody can promise.
      states.append(try state(nil, in: storage, after: before, attempt.accepted[...]))
    }
    let known = old == nil ? scenario.sections : nil
    try image.check(storage.bytes, isOneOf: states.suffix(1), orUncommittedOf: known)
    for loss in [.ofNothing, .ofEverything] + (0..<losses).map({ _ in PowerLoss(using: &random) }) {
      do {
        lossCount += 1
        try image.check(
          storage.bytes(after: loss), isOneOf: states.suffix(attempt.isUncertain ? 2 : 1),
          orUncommittedOf: known)
      } catch {
        throw Unexpected("then \(loss): \(error)")
      }
    }
  }

  /// The state of a generation in a file, which has to hold what it had and what was accepted.
  private func state(
    _ generation: Generation?, in storage: MemoryStorage, after before: CommittedState?,
    _ accepted: ArraySlice<Block>
  ) throws -> CommittedState {
    let state = try CommittedState(generation, in: storage.bytes, using: image)
    let old = before?.contents.sections ?? []
    let known = Set(old.map(\.cid))
    let expected = ArchiveContents(
      header: scenario.header, sections: old + accepted.filter { !known.contains($0.cid) },
      head: state.generation.head?.cid)
    if let difference = expected.difference(from: state.contents) {
      throw Unexpected("generation \(state.generation.number): \(difference)")
    }
    return state
  }

  /// Every failure is told, and nothing else is.
  private func checkErrors(_ storage: MemoryStorage, _ attempt: BackupAttempt) throws {
    guard storage.failureCount > 0 else {
      guard attempt.isCommitted, attempt.errors.isEmpty else {
        throw Unexpected("nothing failed, and it says: \(attempt.errors)")
      }
      return
    }
    guard !attempt.errors.isEmpty else { throw Unexpected("the failure was swallowed") }
    for error in attempt.errors {
      switch (error as? ArchiveError)?.reason {
      case .system(let operation, _) where StorageOperation(rawValue: operation) != nil: continue
      case .commitUncertain, .writerFailed: continue
      default: throw Unexpected("it fails with something else: \(error)")
      }
    }
  }
}
