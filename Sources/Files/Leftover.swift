package import ATProtocol
package import Archive
internal import IPLD
internal import SystemPackage

/// What an interrupted run has left under the temporary name of an archive.
enum Leftover {
  /// The archive, if anything of it holds; nil for a file that was never one, for one of which only
  /// the beginning was written, or was torn by a loss of power.
  ///
  /// - Parameter storage: The file, locked.
  /// - Throws: ``BackupError/leftover(_:_:)`` for an archive that cannot be read; `ArchiveError` if
  ///   the system refuses.
  static func archive(in storage: FileStorage) throws -> ArchiveReader? {
    guard try storage.size > 0 else { return nil }
    let file = try storage.map()
    do {
      let reader = try ArchiveReader(file)
      return reader.hasContent ? reader : nil
    } catch let error as ArchiveError {
      if error.reason == .notAnArchive, !ArchiveReader.hasTraces(in: file) { return nil }
      throw BackupError.leftover(storage.path.string, nil)
    }
  }
}

extension ArchiveReader {
  /// Whose repository the archive begins with; nil if that cannot be told.
  package var owner: DID? {
    do {
      let header = try carHeader
      guard let root = try CARHeader(header.span).roots.first,
        let commit = try body(of: root)
      else { return nil }
      return try Commit(commit.span).did
    } catch {
      // Damaged, or not there yet.
      return nil
    }
  }
}
