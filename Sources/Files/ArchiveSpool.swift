package import Archive
internal import IPLD

/// An archive that is made in a file without a name, to be copied somewhere that cannot be written
/// to twice.
package struct ArchiveSpool {
  /// Where the archive is written.
  package let storage: any ArchiveStorage
  private let file: TemporaryFile

  /// An empty one.
  ///
  /// - Throws: ``BackupError`` if there is no room for it.
  package init() throws {
    file = try TemporaryFile()
    storage = try FileStorage.open(file.path)
  }

  /// Hands out everything that was written.
  package func copy(to sink: (Span<UInt8>) throws -> Void) throws {
    try file.map().withBytes { bytes throws in try sink(bytes) }
  }
}
