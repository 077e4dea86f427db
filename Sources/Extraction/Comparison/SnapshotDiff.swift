package import ATProtocol
internal import Archive
package import Files
internal import IPLD
package import Snapshots

/// What changed between two snapshots: records, and the blobs that records refer to.
///
/// ```swift
/// let diff = try SnapshotDiff.compare(before, after) { print($0.path) }
/// print(diff.createdCount, diff.addedBlobs.map(\.cid))
/// ```
///
/// The snapshots may lie in one archive or in two. What is read follows what changed: of the trees
/// the nodes that they do not share, and the records that changed. Only when one of these refers to
/// a blob that its counterpart does not, all records of a snapshot are looked through, for one that
/// did not change may refer to it, too.
package struct SnapshotDiff: Sendable {
  /// How many records only the new snapshot has.
  package private(set) var createdCount = 0
  /// How many records are others in the new snapshot than in the old.
  package private(set) var updatedCount = 0
  /// How many records only the old snapshot has.
  package private(set) var deletedCount = 0
  /// How many tree nodes only the new snapshot has.
  package private(set) var createdNodeCount = 0
  /// How many tree nodes only the old snapshot has.
  package private(set) var deletedNodeCount = 0
  /// The blobs that only records of the new snapshot refer to, in the order of their CIDs as text.
  package private(set) var addedBlobs: [BlobTable.Entry] = []
  /// The blobs that only records of the old snapshot refer to, in the order of their CIDs as text.
  package private(set) var goneBlobs: [BlobTable.Entry] = []
  /// What could not be read; blobs may be missing from the lists because of it, or be listed in
  /// error.
  package private(set) var gaps: [Gap] = []
  /// How many gaps there are; the first `RepositoryInspection.maximumListed` are listed.
  package private(set) var gapCount = 0

  /// Records that could not be searched for blobs.
  package struct Gap: Equatable, Sendable {
    /// In which snapshot.
    package let side: MSTDiff.Side
    /// Which, and why.
    package let what: String
    /// Whether something is not what was written; otherwise it was not in the CAR.
    package let isDamage: Bool
  }

  /// Whether the snapshots hold the same records.
  package var isEmpty: Bool { createdCount + updatedCount + deletedCount == 0 }

  /// Compares two snapshots.
  ///
  /// - Parameters:
  ///   - old: the one to compare with.
  ///   - new: the other.
  ///   - visit: receives the records that changed, in the order of their keys.
  ///   - observer: is told how reading all of a snapshot gets on, if that has to be.
  /// - Throws: `MSTDiffError` for a tree node that is missing; `ArchiveError`, ``SnapshotError`` or
  ///   `RepositoryError` if the archive, a manifest or a commit is damaged; ``BackupError`` if
  ///   there is no room for a temporary file; what `visit` throws.
  package static func compare(
    _ old: ArchivedSnapshot, _ new: ArchivedSnapshot,
    visit: (MSTDiff.RecordChange) throws -> Void = { _ in },
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> SnapshotDiff {
    var diff = SnapshotDiff()
    let oldBlocks = SnapshotBlocks(old, observer: observer)
    let newBlocks = SnapshotBlocks(new, observer: observer)
    var blobs = BlobDifference(old: oldBlocks, new: newBlocks)
    try SnapshotBlocks.compare(oldBlocks, newBlocks) { change in
      switch change {
      case .createdNode: diff.createdNodeCount += 1
      case .deletedNode: diff.deletedNodeCount += 1
      case .record(let record):
        switch (record.old, record.new) {
        case (nil, _): diff.createdCount += 1
        case (_, nil): diff.deletedCount += 1
        default: diff.updatedCount += 1
        }
        try blobs.read(record)
        try visit(record)
      }
    }
    (diff.addedBlobs, diff.goneBlobs) = try blobs.settle()
    (diff.gaps, diff.gapCount) = (blobs.gaps, blobs.gapCount)
    return diff
  }

}
