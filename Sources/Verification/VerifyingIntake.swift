internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots
internal import Synchronization

/// What verifying snapshots needs of an archive, taken in while the frames of the file are
/// verified, each decompressed once.
///
/// It is useless for a file that turns out to be damaged: then only the archive's index and its
/// survey show what is where.
final class VerifyingIntake: Sendable {
  /// The snapshots, as they are found before anything is verified; nil if they cannot be read.
  let history: SnapshotHistory?
  /// The sections so far, and the CARs that are followed, by their manifests.
  private let state: Mutex<(census: BlockIntake, cars: [CID: FollowedCAR])>
  private let follows: Bool

  /// How many accounts' CARs are followed at a time.
  private static let maximumFollowed = 8

  /// An intake of what a reader reads.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file.
  init(_ reader: ArchiveReader) throws {
    var cars: [CID: FollowedCAR] = [:]
    var history: SnapshotHistory?
    do {
      let found = try SnapshotHistory(of: reader)
      history = found
      for entry in found.newestOfAccounts.prefix(Self.maximumFollowed) {
        let archived = try ArchivedSnapshot(entry.cid, in: found.reader)
        let runs = try archived.order().runs
        // Sections in another order cannot be taken as they come.
        guard zip(runs, runs.dropFirst()).allSatisfy({ $0.upperBound <= $1.lowerBound }) else {
          continue
        }
        cars[entry.cid] = try FollowedCAR(archived.snapshot.car, runs: runs)
      }
    } catch {
      // What is wrong is found again, and told, when the file has been verified.
      cars = [:]
    }
    self.history = history
    follows = !cars.isEmpty
    state = Mutex((try BlockIntake(), cars))
  }

  /// The consumers of the frames.
  var frames: FrameIntake {
    { [self] sections in
      let part = FrameBlocks(sections)
      let followed = follows ? sections : nil
      return { [self] in try take(part, followed) }
    }
  }

  private func take(_ part: FrameBlocks, _ followed: FrameSections?) throws {
    try state.withLock { state in
      if let followed {
        for car in state.cars.values { car.take(followed, from: state.census.next) }
      }
      try state.census.take(part)
    }
  }

  /// The census of the archive, and whether the CARs that were followed are what their manifests
  /// say.
  ///
  /// - Throws: ``BackupError`` if there is no room for it.
  func census(
    of reader: ArchiveReader, _ archive: ArchiveVerification, _ observer: Progress.Observer
  ) throws -> (LaidOutBlocks, cars: [CID: Result<Void, BackupError>]) {
    // The numbers of sections are those of the file only if nothing is amiss.
    guard archive.isIntact, !archive.generation.features.isRepaired else {
      let damaged = Set(archive.damagedSections)
      return (try LaidOutBlocks(reader, except: damaged, observer: observer), [:])
    }
    return try state.withLock { state in
      for ordinal in state.census.postponed {
        try state.census.read(ordinal..<ordinal + 1, reader)
      }
      return (try LaidOutBlocks(state.census), state.cars.compactMapValues { $0.finish() })
    }
  }
}
