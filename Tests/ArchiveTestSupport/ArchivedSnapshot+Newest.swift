package import Archive
package import Snapshots

extension ArchivedSnapshot {
  /// The snapshot that the archive's newest manifest describes.
  ///
  /// In an archive whose footer is lost, the last manifest that is left.
  ///
  /// - Throws: ``SnapshotError`` if there is none or it cannot be used; `ArchiveError` if it is
  ///   damaged.
  package static func newest(in reader: ArchiveReader) throws -> ArchivedSnapshot {
    if let head = reader.generation.head, try reader.movedHeads.isEmpty {
      return try ArchivedSnapshot(head.cid, in: reader)
    }
    let history = try SnapshotHistory(of: reader)
    guard let newest = history.newest else { throw SnapshotError.noSnapshot }
    return try ArchivedSnapshot(newest.cid, in: history.reader)
  }
}
