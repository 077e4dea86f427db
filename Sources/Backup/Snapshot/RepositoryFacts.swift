internal import ATProtocol
internal import IPLD

/// What a manifest says of a repository itself, however its blocks are at hand.
struct RepositoryFacts: Sendable {
  /// The commit.
  let commit: Commit
  /// The commit's CID.
  let root: CID
  /// What the repository consists of.
  let counts: Snapshot.Counts
  /// How many records cannot be read.
  let unreadable: UnreadableRecords
  /// Whether every tree node and record is there.
  let isComplete: Bool
  /// How many blobs records refer to.
  let blobCount: Int
}

extension RepositoryFacts {
  /// What the inspection of a whole CAR found.
  init(_ inspection: RepositoryInspection, _ commit: Commit) {
    self.init(
      commit: commit, root: inspection.header.roots[0],
      counts: Snapshot.Counts(inspection), unreadable: inspection.unreadable,
      isComplete: inspection.isComplete, blobCount: inspection.blobs.entries.count)
  }
}

extension Snapshot.Counts {
  /// What a repository consists of.
  init(_ inspection: RepositoryInspection) {
    self.init(
      records: inspection.recordCount, nodes: inspection.nodeCount,
      blocks: inspection.blocks.count, recordBlocks: inspection.distinctRecordCount)
  }
}
