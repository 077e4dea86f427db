internal import Archive
package import Files
package import SystemPackage

/// Bytes that were fetched: in memory, or in a file without a name.
package enum DownloadedFile: Sendable {
  /// The bytes, in pieces.
  case memory([[UInt8]])
  /// A file that has all of them.
  case file(TemporaryFile)

  /// Calls `body` with the bytes, piece by piece.
  ///
  /// - Throws: ``BackupError`` if the file cannot be read; what `body` throws.
  package func read(_ body: (Span<UInt8>) throws -> Void) throws {
    switch self {
    case .memory(let pieces): for piece in pieces { try body(piece.span) }
    case .file(let file): try file.read(pieces: 1 << 20, body)
    }
  }

  /// Writes them to a file that has its name only when all of it is there.
  ///
  /// - Throws: ``BackupError`` and `ArchiveError` if the file cannot be written, or is there
  ///   already and is not to be replaced.
  package func save(to path: FilePath, replacing: Bool) throws {
    try AtomicFile.save(to: path, replacing: replacing) { try read($0) }
  }
}
