internal import CGlibc
package import IPLD
internal import LibC
package import SystemPackage

/// The beginnings of large blobs that broke off: they lie beside the archive until the next run
/// continues them.
///
/// The folder is `.NAME.pieces`, and each file is named after the blob's CID. A file may have any
/// content, after a loss of power for one: a blob counts only if it hashes to its CID.
///
/// One run of an archive at a time uses it.
package struct BlobPieces: Sendable {
  /// A beginning that is shorter is not kept, in bytes.
  package static let leastCount = 1 << 20

  private let folder: FilePath

  /// The pieces for the archive at a path.
  package init(beside path: FilePath) { folder = AtomicFile.piecesPath(of: path) }

  /// The beginning of a blob; nil if none is kept.
  ///
  /// - Throws: ``BackupError`` if it cannot be opened.
  package func piece(of cid: CID) throws -> TemporaryFile? {
    let path = path(of: cid)
    return AtomicFile.isTaken(path) ? try TemporaryFile(keptAt: path, startingOver: false) : nil
  }

  /// An empty file for the beginning of a blob.
  ///
  /// - Throws: ``BackupError`` if it cannot be made.
  package func begin(_ cid: CID) throws -> TemporaryFile {
    try BlobFolder.makeLast(folder.string)
    return try TemporaryFile(keptAt: path(of: cid), startingOver: true)
  }

  /// Removes the beginning of a blob, if there is one.
  ///
  /// - Throws: ``BackupError`` if it cannot be removed.
  package func remove(_ cid: CID) throws { try AtomicFile.remove(path(of: cid)) }

  /// Removes the folder, if it is there.
  ///
  /// - Throws: ``BackupError`` if it cannot be removed.
  package func removeAll() throws {
    guard AtomicFile.isTaken(folder) else { return }
    for name in try BlobFolder.names(in: folder.string) where name != "." && name != ".." {
      try AtomicFile.remove(folder.appending(name))
    }
    guard unsafe rmdir(folder.string) == 0 || errno == ENOENT else {
      throw BackupError.system("remove \(folder)", errno)
    }
  }

  private func path(of cid: CID) -> FilePath { folder.appending("\(cid)") }
}
