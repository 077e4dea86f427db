package import ATProtocol
internal import Archive
package import Files
internal import IPLD
internal import Repository
package import Snapshots

/// What changed between two snapshots: records, and the blobs that records refer to.
///
/// ```swift
/// let diff = try SnapshotDiff.compare(before, after) { print($0.path) }
/// print(diff.createdCount, diff.addedBlobs.map(\.cid))
/// ```
///
/// The snapshots may lie in one archive or in two. Only what changed is read: the nodes that the
/// trees do not share, and the records that changed. Only when one of these records refers to a
/// blob that its counterpart does not, all records of a snapshot are read, because an unchanged
/// record may refer to that blob, too.
package struct SnapshotDiff: Sendable {
  /// How many records only the new snapshot has.
  package fileprivate(set) var createdCount = 0
  /// How many records are different in the two snapshots.
  package fileprivate(set) var updatedCount = 0
  /// How many records only the old snapshot has.
  package fileprivate(set) var deletedCount = 0
  /// How many tree nodes only the new snapshot has.
  package fileprivate(set) var createdNodeCount = 0
  /// How many tree nodes only the old snapshot has.
  package fileprivate(set) var deletedNodeCount = 0
  /// The blobs that only records of the new snapshot refer to, in the order of their CIDs as text.
  package fileprivate(set) var addedBlobs: [BlobTable.Entry] = []
  /// The blobs that only records of the old snapshot refer to, in the order of their CIDs as text.
  package fileprivate(set) var goneBlobs: [BlobTable.Entry] = []
  /// What could not be read; because of it, blobs may be missing from the lists or be listed in
  /// error.
  package fileprivate(set) var gaps: [Gap] = []
  /// How many gaps there are; the first `RepositoryInspection.maximumListed` are listed.
  package fileprivate(set) var gapCount = 0

  /// Records that could not be searched for blobs: in which snapshot; which, and why; whether that
  /// is damage, otherwise they were not in the CAR.
  package typealias Gap = (side: MSTDiff.Side, what: String, isDamage: Bool)

  /// Whether the snapshots hold the same records.
  package var isEmpty: Bool { createdCount + updatedCount + deletedCount == 0 }

  /// Compares two snapshots.
  ///
  /// - Parameters:
  ///   - old: the one to compare with.
  ///   - new: the other.
  ///   - visit: receives the records that changed, in the order of their keys.
  ///   - observer: called with the progress, if all of a snapshot has to be read.
  /// - Throws: `MSTDiffError` for a tree node that is missing; `ArchiveError`, ``SnapshotError`` or
  ///   `RepositoryError` if the archive, a manifest or a commit is damaged; ``BackupError`` if
  ///   there is no room for a temporary file; what `visit` throws.
  package static func compare(
    _ old: ArchivedSnapshot, _ new: ArchivedSnapshot,
    visit: (MSTDiff.RecordChange) throws -> Void = { _ in },
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> SnapshotDiff {
    var comparison = Comparison(
      old: SnapshotBlocks(old, observer: observer), new: SnapshotBlocks(new, observer: observer))
    try SnapshotBlocks.compare(comparison.old, comparison.new) { change in
      switch change {
      case .createdNode: comparison.diff.createdNodeCount += 1
      case .deletedNode: comparison.diff.deletedNodeCount += 1
      case .record(let record):
        switch (record.old, record.new) {
        case (nil, _): comparison.diff.createdCount += 1
        case (_, nil): comparison.diff.deletedCount += 1
        default: comparison.diff.updatedCount += 1
        }
        if let cid = record.old { try comparison.read(cid, record, .old) }
        if let cid = record.new { try comparison.read(cid, record, .new) }
        try visit(record)
      }
    }
    try comparison.readAllIfLarge()
    comparison.diff.addedBlobs = try comparison.blobs(in: .new, not: .old)
    comparison.diff.goneBlobs = try comparison.blobs(in: .old, not: .new)
    return comparison.diff
  }
}

extension SnapshotDiff {
  /// A blob that was added or removed, and its state in the snapshot that refers to it.
  package typealias BlobChange = (blob: BlobTable.Entry, isAdded: Bool, state: BlobState)

  /// The added and removed blobs, in the order of their CIDs as text.
  ///
  /// - Parameters:
  ///   - old: the snapshot with which the other was compared.
  ///   - new: the other.
  /// - Throws: `ArchiveError` and ``SnapshotError`` if an archive cannot be read.
  package func blobChanges(_ old: ArchivedSnapshot, _ new: ArchivedSnapshot) throws -> [BlobChange]
  {
    // All at once, and by their sizes, so that none is fetched for it from elsewhere.
    func changes(_ blobs: [BlobTable.Entry], in archived: ArchivedSnapshot, isAdded: Bool) throws
      -> [BlobChange]
    {
      let states = try archived.states(of: blobs.map(\.cid), sizes: blobs.map(\.size))
      return zip(blobs, states).map { ($0, isAdded, $1) }
    }
    let all =
      try changes(addedBlobs, in: new, isAdded: true)
      + changes(goneBlobs, in: old, isAdded: false)
    return all.map { ($0, text: "\($0.blob.cid)") }.sorted { $0.text < $1.text }.map(\.0)
  }
}

/// Finds the blobs that only one of two snapshots refers to, given the records that are not the
/// same in both.
///
/// A blob that was added or removed is one that a changed record refers to, before or after, unless
/// another record of the other snapshot refers to it as well; to know that, all records of that
/// snapshot are read, in one pass.
///
/// When much has changed, both snapshots are read completely. The cost of that is known beforehand,
/// however often a hostile tree names one long record.
private struct Comparison {
  /// How many records are read one by one.
  private static let maximumReads = 1000
  /// How many bytes of records are read one by one.
  private static let maximumReadLength = 16 << 20

  let old: SnapshotBlocks
  let new: SnapshotBlocks
  var diff = SnapshotDiff()
  var found: [MSTDiff.Side: BlobTable] = [:]
  var scanner = RecordScanner()
  var readCount = 0
  var readLength = 0

  private func blocks(_ side: MSTDiff.Side) -> SnapshotBlocks { side == .old ? old : new }

  /// Whether there was too much to read one by one.
  private var isLarge: Bool {
    readCount > Self.maximumReads || readLength > Self.maximumReadLength
  }

  /// Records the blobs that a record refers to, before or after.
  mutating func read(_ cid: CID, _ record: MSTDiff.RecordChange, _ side: MSTDiff.Side) throws {
    let blocks = blocks(side)
    guard !isLarge, !blocks.isPlainRecord(cid) else { return }
    readCount += 1
    do {
      let isThere: Void? = try blocks.withBody(of: cid) { bytes in
        readLength += bytes.count
        _ = scanner.scan(bytes) { ref in
          _ = found[side, default: BlobTable()].insert(ref, from: record.key)
        }
      }
      guard isThere == nil else { return }
      // What was not there when the snapshot was made is not damage.
      let isDamage = blocks.archived.snapshot.isComplete
      note(side, "\(record.path) is not in the archive", isDamage: isDamage)
    } catch let error as ArchiveError {
      note(side, "\(record.path): \(try error.flaw())", isDamage: true)
    }
  }

  private mutating func note(_ side: MSTDiff.Side, _ what: String, isDamage: Bool) {
    diff.gapCount += 1
    guard diff.gaps.count < RepositoryInspection.maximumListed else { return }
    diff.gaps.append((side, what, isDamage))
  }

  /// Reads both snapshots if there was too much to read one by one.
  mutating func readAllIfLarge() throws {
    guard isLarge else { return }
    // Blocks that were missing one by one are missing in bulk, too.
    (diff.gaps, diff.gapCount) = ([], 0)
    for side in [MSTDiff.Side.old, .new] { found[side] = try allBlobs(side) }
  }

  /// The blobs of one side, once all changes have been recorded, in the order of their CIDs as
  /// text.
  mutating func blobs(
    in side: MSTDiff.Side, not other: MSTDiff.Side
  ) throws -> [BlobTable.Entry] {
    var entries = found[side]?.entries.filter { found[other]?.contains($0.cid) != true } ?? []
    if !isLarge, !entries.isEmpty {
      let all = try allBlobs(other)
      entries.removeAll { all.contains($0.cid) }
    }
    return entries.map { ($0, text: "\($0.cid)") }.sorted { $0.text < $1.text }.map(\.0)
  }

  /// The blobs that any record of a snapshot refers to.
  private mutating func allBlobs(_ side: MSTDiff.Side) throws -> BlobTable {
    let contents = try blocks(side).contents()
    if let flaw = contents.flaw { note(side, flaw, isDamage: true) }
    let tree = contents.tree
    if !tree.isComplete {
      note(
        side,
        "records (\(tree.missingRecordCount)) and tree nodes (\(tree.missingNodes.count)) are not in the archive",
        isDamage: blocks(side).archived.snapshot.isComplete)
    }
    return contents.blobs
  }
}
