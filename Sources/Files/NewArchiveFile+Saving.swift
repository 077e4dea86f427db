internal import Archive
package import SystemPackage

extension NewArchiveFile {
  /// Writes a file that has its name only when all of it is there and on the medium.
  ///
  /// - Parameters:
  ///   - path: where.
  ///   - replacing: whether a file that is there is replaced.
  ///   - produce: hands the content, piece by piece, to the sink it is given.
  /// - Throws: ``BackupError`` and `ArchiveError` if the file cannot be written, or is there
  ///   already and is not to be replaced; what `produce` throws.
  package static func save(
    to path: FilePath, replacing: Bool, _ produce: ((Span<UInt8>) throws -> Void) throws -> Void
  ) throws {
    let target = try NewArchiveFile(path, replacing: replacing)
    do {
      let storage = try target.storage()
      try storage.truncate(to: 0)
      var offset: UInt64 = 0
      try produce { bytes in
        try storage.write(bytes, at: offset)
        offset += UInt64(bytes.count)
      }
      try storage.synchronize()
      try target.publish()
    } catch {
      target.discard()
      throw error
    }
  }
}
