internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots
internal import SystemPackage

/// Packing goes on with what an earlier run has left under the temporary name, or does not.
///
/// | what is there | packing |
/// |---|---|
/// | blocks of the same CAR, not committed | goes on |
/// | blocks of the same account, not committed | begins |
/// | committed blocks of the same account, and no snapshot: an interrupted backup | goes on |
/// | a snapshot of the same commit | goes on |
/// | anything else | fails |
extension RepositoryPacker {
  /// Whether packing goes on with an archive, and does not begin again.
  ///
  /// - Parameters:
  ///   - reader: what is there.
  ///   - path: its name, for the message.
  ///   - repository: what is going to be packed.
  ///   - header: its CAR header, with its varint in front.
  /// - Throws: ``BackupError/leftover(_:_:)`` for something that another run may still need.
  static func isContinued(
    _ reader: ArchiveReader, at path: FilePath, by repository: CheckedRepository, header: [UInt8]
  ) throws -> Bool {
    var owner = reader.owner
    let isOwn = owner == repository.commit.did
    if reader.generation.number == 0 {
      if isOwn { return try reader.carHeader == header }
    } else if reader.recovery?.rebuild == nil {
      guard let head = reader.generation.head?.cid else {
        if isOwn { return true }
        throw BackupError.leftover(path.string, owner?.text)
      }
      if let newest = try? ArchivedSnapshot.manifest(head, in: reader) {
        owner = newest.did
        if newest.did == repository.commit.did,
          newest.commit == repository.inspection.header.roots.first
        {
          return true
        }
      }
    }
    throw BackupError.leftover(path.string, owner?.text)
  }
}
