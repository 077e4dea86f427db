package import Archive
package import IPLD
package import Snapshots

/// What became of one record from snapshot to snapshot.
package struct RecordHistory {
  /// A snapshot that has another version of the record than the one before it, or none any more;
  /// whether the one before it had none; the record's CID, or nil if it is gone.
  package typealias Change = (entry: SnapshotHistory.Entry, isNew: Bool, cid: CID?)

  /// The changes, the oldest first.
  package private(set) var changes: [Change] = []
  /// Snapshots in which the record could not be looked for, and why.
  package private(set) var gaps: [String] = []

  /// Looks the record up in each snapshot.
  ///
  /// - Parameters:
  ///   - path: its path, `collection/rkey`.
  ///   - entries: the snapshots of its account, the oldest first.
  ///   - reader: the archive.
  package init(of path: String, in entries: [SnapshotHistory.Entry], _ reader: ArchiveReader) {
    var last: CID?
    for entry in entries {
      let cid: CID?
      do {
        cid = try ArchivedSnapshot(entry.cid, in: reader).recordCID(path)
      } catch {
        gaps.append("snapshot \(entry.number): \(error)")
        continue
      }
      defer { last = cid }
      guard cid != last else { continue }
      changes.append((entry, last == nil, cid))
    }
  }
}
