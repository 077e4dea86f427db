import Archive
import ArchiveTestSupport
import Copying
import Failures
import Files
import Packing
import Snapshots
import SystemPackage
import Terminal
import TestSupport
import Verification

/// Verbs that make a new archive of the old one, which stays until the new one has its name.
extension SequenceArchive {
  /// Runs a verb that makes a new file in the place of the old one.
  mutating func renew(
    _ words: String, with other: [UInt8]? = nil,
    _ verb: (FilePath, ArchiveCopier) throws -> Void
  ) throws {
    let path = FilePath(try folder.write("a.car.zst", file))
    let found = try SequenceFindings(file, states, seams: seams)
    let names = folder.names()
    if random.next() % 2 == 0 {
      let interruption = SequenceInterruption(&random)
      var storages: [InterruptedStorage] = []
      let copier = ArchiveCopier(storage: { target, archives in
        let storage = interruption.storage(over: try target.storage())
        storages.append(storage)
        return try StorageLayers.begin(in: storage, of: archives.map(\.file))
      })
      do {
        try verb(path, copier)
      } catch {
        if storages.contains(where: \.isReached) {
          steps.append("\(words), interrupted by \(interruption): \(error)")
          counts["interrupted by \(interruption.kind.rawValue)", default: 0] += 1
          if interruption.kind == .fullDisk,
            (error as? any Explained)?.explanation.status == .damaged
          {
            throw Unexpected("a full disk is called damage: \(error)")
          }
        }
        guard try isUntouched, folder.names() == names else {
          throw Unexpected("\(words), interrupted, changes the old file or leaves another")
        }
      }
    }
    // If it was not interrupted, it is repeated.
    do {
      try verb(path, ArchiveCopier())
    } catch {
      steps.append("\(words): refused: \(error)")
      counts["refused", default: 0] += 1
      guard try isUntouched, folder.names() == names else {
        throw Unexpected("\(words), refused, changes the old file or leaves another")
      }
      let verdict = try verdict(of: file)
      // What an unfinished write has left is taken over first.
      if verdict == .intact { throw Unexpected("\(words) refuses an intact archive: \(error)") }
      return
    }
    let hasChanged = try !isUntouched
    file = try folder.read("a.car.zst")
    guard hasChanged else {
      steps.append("\(words): nothing to save")
      return
    }
    steps.append("\(words): done")
    seams = []
    try requireCopied(found, words)
    if let other { try requireCopied(try SequenceFindings(other, states), words) }
  }

  /// Whether the old file is unchanged.
  ///
  /// A writer that opens a sealed one makes both of its key frames whole.
  private var isUntouched: Bool {
    get throws {
      let old = try folder.read("a.car.zst")
      return try seal == nil ? old == file : TestSeal.plain(old) == TestSeal.plain(file)
    }
  }

  /// Repairs into a new file, which takes the place of the old one.
  mutating func repairIntoNew() throws {
    let words = "repair -o NEW"
    var found = try SequenceFindings(file, states, seams: seams)
    let storage = MemoryStorage()
    do {
      let reader = try ArchiveReader(MappedFile(copying: file).archive())
      let report = try ArchiveCopier().salvage(
        reader, into: StorageLayers.begin(in: storage, of: [reader.file]), by: options().provenance)
      let saved = Set(report.snapshots.compactMap(\.old))
      states.givenUp.formUnion(Set(found.manifests.keys).subtracting(saved))
      // The order of a snapshot's blocks may be lost with the numbers of sections.
      if try reader.mayHaveLostOrders {
        let inexact = report.snapshots.filter { !$0.loss.isExact }
        found = found.leavingOut(inexact.compactMap(\.old))
      }
    } catch {
      steps.append("\(words): refused: \(error)")
      guard found.manifests.isEmpty else {
        throw Unexpected("(P) \(words) refuses an archive of which something is left: \(error)")
      }
      return
    }
    file = storage.bytes
    seams = []
    steps.append("\(words): done")
    try requireCopied(found, words, isSalvage: true)
  }
}
