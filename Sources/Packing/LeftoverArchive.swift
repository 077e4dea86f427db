internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots
internal import SystemPackage

/// What an earlier run has left under the temporary name of a new archive, and what packing does
/// with it.
///
/// | what is there | packing |
/// |---|---|
/// | nothing, or something that never was an archive | begins |
/// | blocks of the same CAR, not committed | goes on |
/// | blocks of the same account, not committed | begins |
/// | committed blocks of the same account, and no snapshot: an interrupted backup | goes on |
/// | a snapshot of the same commit | goes on |
/// | anything else | fails |
enum LeftoverArchive {
  /// What to do with the file.
  enum Use {
    /// Empty it.
    case begin
    /// Append to it; nothing is committed in it yet.
    case resume
    /// Append to it; what is committed in it counts already.
    case append
  }

  /// Looks at what is there.
  ///
  /// - Parameters:
  ///   - storage: the file, locked.
  ///   - path: its name, for the message.
  ///   - repository: what is going to be packed.
  ///   - header: its CAR header, with its varint in front.
  /// - Throws: ``BackupError/leftover(_:_:)`` for something that another run may still need;
  ///   `ArchiveError` if the file cannot be read.
  static func use(
    of storage: any ArchiveStorage, at path: FilePath, for repository: CheckedRepository,
    header: [UInt8]
  ) throws -> Use {
    guard try storage.size > 0 else { return .begin }
    let file = try storage.map()
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(file)
    } catch let error as ArchiveError {
      if error.reason == .notAnArchive, !ArchiveTraces.are(in: file) { return .begin }
      throw BackupError.leftover(path.string, nil)
    }
    let owner = reader.owner
    guard reader.generation.number > 0 else {
      if reader.sectionCount == 0 { return .begin }
      if owner == repository.commit.did {
        return try reader.carHeader == header ? .resume : .begin
      }
      throw BackupError.leftover(path.string, owner?.text)
    }
    guard reader.recovery?.rebuild == nil else {
      throw BackupError.leftover(path.string, owner?.text)
    }
    guard let head = reader.generation.head?.cid else {
      if owner == repository.commit.did { return .append }
      throw BackupError.leftover(path.string, owner?.text)
    }
    let newest: Snapshot
    do {
      newest = try ArchivedSnapshot.manifest(head, in: reader)
    } catch is SnapshotError {
      throw BackupError.leftover(path.string, owner?.text)
    }
    guard newest.did == repository.commit.did,
      newest.commit == repository.inspection.header.roots.first
    else { throw BackupError.leftover(path.string, newest.did.text) }
    return .append
  }
}
