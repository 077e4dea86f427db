internal import ATProtocol
internal import Archive
internal import IPLD
internal import SystemPackage

/// A repository put together from the changes that a server sent and the snapshot that an archive has.
///
/// The blocks that are new come first, then those of the snapshot in its order, as far as the new tree leads to them: an order that differs little
/// from the one the archive knows. It is not the order of anybody's export; ``RestoredRepository`` gives the repository back in canonical order.
struct AssembledRepository {
  /// The CAR.
  let car: MappedFile
  /// What the server sent beside the changes, if that is much.
  let leftOut: Snapshot.LeftOut?

  /// Puts a repository together.
  ///
  /// - Parameters:
  ///   - changes: the CAR that the server sent, each block of which hashes to its CID.
  ///   - base: the snapshot that the archive has.
  ///   - folder: where to put files without a name.
  /// - Throws: ``Incomplete`` if the two do not make a whole repository; `ArchiveError` and ``SnapshotError`` for a snapshot that is damaged.
  init(
    _ changes: CommittedBlocks.Source, after base: ArchivedSnapshot, folder: FilePath
  ) throws {
    let restored = try RestoredRepository(base)
    guard restored.isExact else { throw Incomplete() }
    let blocks = CommittedBlocks([changes, try CommittedBlocks.Source(restored.mapped)])
    guard blocks.isWhole else { throw Incomplete() }
    car = try blocks.writeInOrderOfSources(folder: folder)
    leftOut = LeftOutBlocks.of(blocks)
  }

  /// That the changes and the snapshot do not make a whole repository.
  struct Incomplete: Error {}
}
