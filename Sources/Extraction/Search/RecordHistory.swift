package import Archive
package import IPLD
package import Snapshots

/// What became of one record from snapshot to snapshot.
package struct RecordHistory {
  /// A snapshot that has another version of the record than the one before it, or none any more.
  package struct Change: Sendable {
    /// What happened.
    package enum Kind: String, Sendable {
      case created, updated, deleted
    }

    /// The snapshot.
    package let entry: SnapshotHistory.Entry
    /// What happened between the snapshot before and this one.
    package let kind: Kind
    /// The record's CID; nil if it is gone.
    package let cid: CID?
  }

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
        cid = try ArchivedSnapshot(entry.cid, in: reader).record(path)?.cid
      } catch {
        gaps.append("snapshot \(entry.number): \(error)")
        continue
      }
      defer { last = cid }
      guard cid != last else { continue }
      let kind: Change.Kind = last == nil ? .created : cid == nil ? .deleted : .updated
      changes.append(Change(entry: entry, kind: kind, cid: cid))
    }
  }
}
