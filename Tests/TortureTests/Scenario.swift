import Archive
import ArchiveTestSupport
import IPLD
import TestSupport

/// Backups one after another into one file, and every state that the file is in after a step if
/// nothing disturbs them.
struct Scenario {
  static let header: [UInt8] = [1, 0xa0]

  let steps: [BackupStep]
  let options: ArchiveOptions
  /// What the archive is sealed with; nil if it is not.
  private let seal: TestSeal?
  /// The file after each step, as it lies on the disk.
  private var files: [[UInt8]] = []
  /// The states that the steps leave.
  private(set) var states: [CommittedState] = []
  /// Every state that was ever committed, those of checkpoints included.
  private(set) var commits: [CommittedState] = []
  /// How many operations each step asks of its storage.
  private(set) var operationCounts: [Int] = []
  /// Everything that was appended, manifests included.
  private(set) var sections: [Block] = []

  /// Runs the steps without any disturbance.
  ///
  /// - Throws: if that does not go well, or does not give back what was put in.
  init(
    _ steps: [BackupStep], checkpointLength: UInt64 = 64 << 20, using image: ArchiveImage,
    seal: TestSeal? = nil
  ) throws {
    (self.steps, self.seal) = (steps, seal)
    // One worker, because there is little to compress.
    var options = ArchiveOptions(workers: 1)
    options.checkpointLength = checkpointLength
    self.options = options
    var known = Set<CID>()
    for index in steps.indices {
      let storage = storage(before: index)
      let attempt = run(steps[index], on: storage)
      guard attempt.isCommitted, let last = attempt.acknowledged.last?.generation else {
        throw Unexpected("step \(index): \(attempt.errors)")
      }
      files.append(storage.bytes)
      let file = try plain(storage.bytes)
      guard file.starts(with: state(before: index)?.bytes ?? []) else {
        throw Unexpected("step \(index) changed what was committed")
      }
      guard last.committedLength == UInt64(file.count) else {
        throw Unexpected("step \(index): something follows the footer")
      }
      for (generation, _) in attempt.acknowledged {
        commits.append(try CommittedState(generation, in: file, using: image))
      }
      states.append(commits[commits.count - 1])
      operationCounts.append(storage.count())
      let offered = steps[index].sections + (attempt.manifest.map { [$0] } ?? [])
      sections += offered.filter { known.insert($0.cid).inserted }
      let expected = ArchiveContents(
        header: Self.header, sections: sections, head: attempt.manifest?.cid)
      if let difference = expected.difference(from: states[index].contents) {
        throw Unexpected("step \(index): \(difference)")
      }
    }
  }

  /// Performs a step on a storage.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - storage: What it is performed on.
  ///   - temper: What the caller does when something fails.
  ///   - startsOver: Whether nobody has been told of the file yet, so that it may be begun again.
  func run(
    _ step: BackupStep, on storage: MemoryStorage, _ temper: BackupAttempt.Temper = .meek,
    startsOver: Bool = false
  ) -> BackupAttempt {
    var options = options
    options.startsOver = startsOver
    return BackupAttempt(
      step, on: storage, header: Self.header, options: options, temper: temper, seal: seal)
  }

  /// A storage as it is before a step.
  func storage(before index: Int, _ faults: [StorageFault] = [], capacity: UInt64 = .max)
    -> MemoryStorage
  {
    let file = file(before: index)
    return MemoryStorage(
      file, .init(faults, capacity: capacity, floor: floor(after: state(before: index))))
  }

  /// The file before a step, as it lies on the disk.
  func file(before index: Int) -> [UInt8] { index > 0 ? files[index - 1] : [] }

  /// The file after a step.
  func file(after index: Int) -> [UInt8] { files[index] }

  /// The archive that a file holds.
  func plain(_ file: [UInt8]) throws -> [UInt8] {
    seal == nil ? file : try TestSeal.plain(file)
  }

  /// Whether the archives are sealed.
  var isSealed: Bool { seal != nil }

  /// How many bytes no writer may touch after a state.
  ///
  /// A sealed archive may have pieces at its end that were not on the medium when their table was
  /// written, and are written again.
  func floor(after state: CommittedState?) -> UInt64 {
    seal == nil ? state?.generation.committedLength ?? 0 : 0
  }

  /// The state before a step; nil before the first.
  func state(before index: Int) -> CommittedState? { index > 0 ? states[index - 1] : nil }
}

/// Something that no fault explains.
struct Unexpected: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
