internal import ATProtocol
package import Archive
internal import IPLD
internal import Snapshots

/// What one archive has and another lacks.
package struct ArchiveSurplus {
  /// How many snapshots, as told by their commits.
  package private(set) var snapshotCount = 0
  /// How many blobs and documents.
  package private(set) var blobCount = 0
  /// How many blocks of repositories, and of bookkeeping.
  private var blockCount = 0

  /// Whether the other archive has every intact section and every snapshot.
  package var isNone: Bool { snapshotCount + blobCount + blockCount == 0 }
  /// Whether the other archive lacks something that its owner would miss.
  package var isWorthTaking: Bool { snapshotCount + blobCount > 0 }

  /// Compares two archives, either of which may be damaged.
  ///
  /// - Throws: `ArchiveError` if one cannot be read.
  package init(of archive: ArchiveReader, over other: ArchiveReader) throws {
    let known = Set(try SnapshotHistory(of: other).entries.map(\.commit))
    let history = try SnapshotHistory(of: archive)
    let archive = history.reader
    for entry in history.entries where !known.contains(entry.commit) { snapshotCount += 1 }
    let cids = try archive.readableCIDs()
    let states = try other.states(cids.count) { cids[$0] }
    for (cid, state) in zip(cids, states) where state.bodyLength == nil {
      if cid.codec == .raw { blobCount += 1 } else { blockCount += 1 }
    }
  }
}
