import Archive
import ArchiveTestSupport
import IPLD
import TestSupport

/// Looks at what disturbed steps left behind: the file has to be as it was, or as it should have
/// become, and the next step has to succeed.
struct Aftermath {
  let scenario: Scenario
  let image: ArchiveImage
  /// Everything that was ever offered to a writer, by its CID.
  private var offered: [CID: Block] = [:]
  /// How many operations were made to fail.
  private(set) var faultCount = 0
  /// How many files were examined that a loss of power could have left.
  private(set) var lossCount = 0
  /// How many times a step was repeated, and how many sections were taken over then.
  private(set) var recoveryCount = 0
  private(set) var adoptedCount: UInt64 = 0
  /// What the last step that was made again left.
  private var recovered: CommittedState?

  init(_ scenario: Scenario, _ image: ArchiveImage) {
    self.scenario = scenario
    self.image = image
    for block in scenario.sections { offered[block.cid] = block }
  }

  /// Performs a step on a storage, and checks everything there is to check after it.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - storage: What it is performed on.
  ///   - promised: The last state that a writer has said was committed.
  ///   - temper: What the caller does when something fails.
  ///   - losses: How many times the power goes, besides the loss of nothing and that of everything.
  ///   - random: What that is by.
  /// - Throws: what must not be.
  /// - Returns: The last state that a writer has said was committed, and whether it said so at the
  ///   end of the step.
  mutating func perform(
    _ step: BackupStep, on storage: MemoryStorage, after promised: CommittedState?,
    _ temper: BackupAttempt.Temper = .meek, losses: Int = 2, using random: inout SeededGenerator
  ) throws -> (promised: CommittedState?, isCommitted: Bool) {
    let (before, failuresBefore) = (try scenario.plain(storage.bytes), storage.failureCount)
    let attempt = scenario.run(step, on: storage, temper, startsOver: promised == nil)
    if let manifest = attempt.manifest { offered[manifest.cid] = manifest }
    adoptedCount += attempt.adoptedCount
    faultCount += storage.failureCount - failuresBefore
    try checkErrors(attempt, failures: storage.failureCount - failuresBefore)

    var states = promised.map { [$0] } ?? []
    var promises = states.count
    func state(_ generation: Generation?, accepted: Int) throws -> CommittedState {
      try self.state(
        generation, in: storage, after: states.last, attempt.accepted.prefix(accepted))
    }
    // A generation that was never promised may be there anyway, as nobody knew.
    let shown = try image.generation(of: before)
    if let shown, shown != promised?.generation { states.append(try state(shown, accepted: 0)) }
    // Or it lacked only its footer, and got one, even if something failed then without a report.
    if let opened = attempt.opened, opened != shown {
      states.append(try state(opened, accepted: 0))
      promises = states.count
    } else if !attempt.isOpened, !attempt.isUncertain,
      let completed = try image.generation(of: scenario.plain(storage.bytes)), completed != shown
    {
      states.append(try state(completed, accepted: 0))
    }
    for (generation, count) in attempt.acknowledged {
      states.append(try state(generation, accepted: count))
      promises = states.count
    }
    if attempt.isUncertain {
      // As long as the power stays, the file shows what cannot be promised. The last piece of a
      // sealed one, which was being sealed, may not have got so far.
      let visible = try image.generation(of: scenario.plain(storage.bytes))
      if !scenario.isSealed || visible != nil && visible != states.last?.generation {
        states.append(try state(nil, accepted: attempt.accepted.count))
      }
    }
    let known = promises == 0 ? Array(offered.values) : nil
    try image.check(
      scenario.plain(storage.bytes), isOneOf: states.suffix(1),
      orUncommittedOf: states.isEmpty ? known : nil,
      mayTearFooter: storage.hasLostPower)
    for loss in [.ofNothing, .ofEverything] + (0..<losses).map({ _ in PowerLoss(using: &random) }) {
      do {
        lossCount += 1
        try image.check(
          scenario.plain(storage.bytes(after: loss)),
          isOneOf: states.dropFirst(max(0, promises - 1)),
          orUncommittedOf: known, mayTearFooter: true)
      } catch {
        throw Unexpected("then \(loss): \(error)")
      }
    }
    return (promises > 0 ? states[promises - 1] : nil, attempt.isCommitted)
  }

  /// Disturbs a step, then the attempt to make it again if that is requested, and then makes it
  /// again undisturbed.
  ///
  /// It continues with the file as the writer left it, or as a loss of power did.
  ///
  /// - Returns: Whether the last of the faults was met.
  mutating func disturb(
    _ index: Int, _ fault: StorageFault, _ temper: BackupAttempt.Temper = .meek,
    then second: StorageFault? = nil, losses: Int = 0, using random: inout SeededGenerator
  ) throws -> Bool {
    let step = scenario.steps[index]
    var storage = scenario.storage(before: index, [fault])
    var (promised, isCommitted) = try perform(
      step, on: storage, after: scenario.state(before: index), temper, losses: losses,
      using: &random)
    var isMet = storage.failureCount > 0
    if let second {
      storage = leftover(of: storage, promised, using: &random)
      storage.conditions.faults = [second]
      (promised, isCommitted) = try perform(
        step.again(using: &random), on: storage, after: promised, losses: losses, using: &random)
      isMet = storage.failureCount > 0
    }
    if !isCommitted || random.next() % 4 == 0 {
      storage = leftover(of: storage, promised, using: &random)
      try performAgain(step, on: storage, after: promised, using: &random)
    }
    return isMet
  }

  /// A storage that continues with what another was left with: the same if only the process ended,
  /// or what the power left.
  private func leftover(
    of storage: MemoryStorage, _ promised: CommittedState?, using random: inout SeededGenerator
  ) -> MemoryStorage {
    let conditions = MemoryStorage.Conditions(floor: scenario.floor(after: promised))
    if random.next() % 2 == 0 {
      // What is not durable yet is as little durable when the next process opens the file.
      return storage.reopened(conditions)
    }
    return storage.surviving(PowerLoss(using: &random), conditions)
  }

  /// Makes a step again that was disturbed, on what is left: it has to be committed, in full.
  ///
  /// - Returns: The state it leaves.
  @discardableResult
  mutating func performAgain(
    _ step: BackupStep, on storage: MemoryStorage, after promised: CommittedState?,
    using random: inout SeededGenerator
  ) throws -> CommittedState {
    recoveryCount += 1
    storage.conditions = .init(floor: scenario.floor(after: promised))
    let again = step.again(using: &random)
    let (state, isCommitted) = try perform(
      again, on: storage, after: promised, losses: 0, using: &random)
    guard let state, isCommitted else { throw Unexpected("it is not committed at last") }
    let held = Set(state.contents.sections.map(\.cid))
    guard again.sections.allSatisfy({ held.contains($0.cid) }) else {
      throw Unexpected("not all of it is there at last")
    }
    let plain = try scenario.plain(storage.bytes)
    guard state.bytes.count == plain.count else { throw Unexpected("something follows") }
    recovered = state
    return state
  }

  /// Has other programs look at what the last step that was made again has left.
  func checkIndependently() throws {
    guard let recovered else { throw Unexpected("no step was made again") }
    try image.checkIndependently(recovered.bytes, recovered.contents)
  }

  /// The state of a generation in a file; nil for what it opens as.
  ///
  /// It has to hold what it had, all that was accepted, and nothing that was not offered.
  private func state(
    _ generation: Generation?, in storage: MemoryStorage, after before: CommittedState?,
    _ accepted: ArraySlice<Block>
  ) throws -> CommittedState {
    let state = try CommittedState(generation, in: scenario.plain(storage.bytes), using: image)
    let number = state.generation.number
    let old = before?.contents.sections ?? []
    guard state.contents.header == Scenario.header, state.contents.sections.starts(with: old)
    else { throw Unexpected("generation \(number) does not begin with what there was") }
    var held = Set(old.map(\.cid))
    for block in state.contents.sections.dropFirst(old.count) {
      guard held.insert(block.cid).inserted else {
        throw Unexpected("generation \(number) has \(block.cid) twice")
      }
      guard offered[block.cid] == block else {
        throw Unexpected("generation \(number) has \(block.cid), which was never offered")
      }
    }
    if let lost = accepted.first(where: { !held.contains($0.cid) }) {
      throw Unexpected("generation \(number) lacks \(lost.cid), which was accepted")
    }
    return state
  }

  /// Every failure is reported, and nothing else.
  private func checkErrors(_ attempt: BackupAttempt, failures: Int) throws {
    guard failures > 0 else {
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
