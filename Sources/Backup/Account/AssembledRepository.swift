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

  /// Puts a repository together.
  ///
  /// - Parameters:
  ///   - changes: the CAR that the server sent, each block of which hashes to its CID.
  ///   - base: the snapshot that the archive has.
  ///   - folder: where to put files without a name.
  /// - Throws: ``Incomplete`` if the two do not make a whole repository; `ArchiveError` and ``SnapshotError`` for a snapshot that is damaged.
  init(_ changes: MappedFile, after base: ArchivedSnapshot, folder: FilePath) throws {
    let restored = try RestoredRepository(base)
    guard restored.isExact else { throw Incomplete() }
    let all = try TemporaryFile(in: folder)
    let header = try changes.withBytes { bytes throws in try CARHeader(bytes) }
    guard let root = header.roots.first else { throw Incomplete() }
    var start: [UInt8] = []
    CARWriter.appendHeader(roots: [root], to: &start)
    try all.write(start.span)
    try changes.withBytes { bytes throws in
      try all.write(bytes.extracting(header.length..<bytes.count))
    }
    try restored.withBytes { bytes throws in
      try all.write(bytes.extracting(CARHeader(bytes).length..<bytes.count))
    }
    car = try Self.reachable(of: all.map(), header: start, folder: folder)
  }

  /// That the changes and the snapshot do not make a whole repository.
  struct Incomplete: Error {}

  /// The sections that the tree leads to, each once.
  private static func reachable(
    of all: MappedFile, header: [UInt8], folder: FilePath
  ) throws -> MappedFile {
    let inspection = try all.withBytes { bytes throws(CARError) in
      try RepositoryInspector.inspect(bytes, verifying: false)
    }
    guard inspection.isWellFormed, inspection.isComplete else { throw Incomplete() }
    let file = try TemporaryFile(in: folder)
    try file.write(header.span)
    try all.withBytes { bytes throws in
      var cursor = CARCursor(header: inspection.header, payload: inspection.payload)
      while let (section, cid) = try cursor.next(in: bytes) {
        guard let index = inspection.blocks.index(of: cid, in: bytes),
          inspection.isReached(index), inspection.blocks.body(index) == section.bodyRange
        else { continue }
        try file.write(bytes.extracting(section.start..<section.end))
      }
    }
    return try file.map()
  }
}
