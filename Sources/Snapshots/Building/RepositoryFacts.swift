package import ATProtocol
package import IPLD
package import Repository

/// What a manifest says of a repository itself, however its blocks are at hand.
package struct RepositoryFacts: Sendable {
  /// The commit.
  package let commit: Commit
  /// The commit's CID.
  package let root: CID
  /// What the repository consists of.
  package let counts: Snapshot.Counts
  /// How many records cannot be read.
  let unreadable: UnreadableRecords
  /// Whether every tree node and record is there.
  let isComplete: Bool
  /// How many blobs records refer to.
  package let blobCount: Int

  package init(
    commit: Commit, root: CID, counts: Snapshot.Counts, unreadable: UnreadableRecords,
    isComplete: Bool, blobCount: Int
  ) {
    (self.commit, self.root, self.counts) = (commit, root, counts)
    (self.unreadable, self.isComplete, self.blobCount) = (unreadable, isComplete, blobCount)
  }
}

extension RepositoryFacts {
  /// What the inspection of a whole CAR found.
  package init(_ inspection: RepositoryInspection, _ commit: Commit) {
    self.init(
      commit: commit, root: inspection.header.roots[0],
      counts: Snapshot.Counts(inspection), unreadable: inspection.unreadable,
      isComplete: inspection.isComplete, blobCount: inspection.blobs.entries.count)
  }
}

extension Snapshot.Counts {
  /// What a repository consists of.
  package init(_ inspection: RepositoryInspection) {
    self.init(
      records: inspection.recordCount, nodes: inspection.nodeCount,
      blocks: inspection.distinctBlockCount, recordBlocks: inspection.distinctRecordCount)
  }
}
