internal import Archive
internal import Files
package import SystemPackage

/// A piece of an account that was fetched and checked, for a script to have.
package struct FetchedPiece: Sendable {
  private let file: TemporaryFile

  /// A piece that lies in a file without a name.
  init(_ file: TemporaryFile) { self.file = file }

  /// A piece in memory.
  ///
  /// - Throws: ``BackupError`` if there is no room for it.
  package init(_ pieces: [[UInt8]]) throws {
    file = try TemporaryFile()
    for piece in pieces { try file.write(piece.span) }
  }

  /// Calls `body` with the bytes, piece by piece.
  ///
  /// - Throws: ``BackupError``; what `body` throws.
  package func read(_ body: (Span<UInt8>) throws -> Void) throws {
    try file.read(pieces: 1 << 20, body)
  }

  /// Writes it to a file that has its name only when all of it is there.
  ///
  /// - Throws: ``BackupError`` and `ArchiveError` if the file cannot be written, or is there
  ///   already and is not to be replaced.
  package func save(to path: FilePath, replacing: Bool) throws {
    try AtomicFile.save(to: path, replacing: replacing) { try read($0) }
  }
}
