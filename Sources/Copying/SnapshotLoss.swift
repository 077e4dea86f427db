internal import ATProtocol
package import IPLD
internal import Repository
internal import Snapshots

/// What salvage could not save of a snapshot.
package struct SnapshotLoss: Sendable {
  /// Why all of it is lost, if the commit or the root of the tree is; otherwise nil.
  package internal(set) var whole: String?
  /// Whether its CAR can be given back bit for bit.
  package internal(set) var isExact: Bool
  /// How many sections of the CAR are lost.
  package internal(set) var blockCount: UInt64
  /// The records that are lost, by their paths; the first `RepositoryInspection.maximumListed`.
  package internal(set) var records: [String] = []
  /// How many records are lost.
  package internal(set) var recordCount = 0
  /// The blobs and extras that were held and are lost, those that can be named.
  package internal(set) var blobs: [CID] = []
  /// How many blobs and extras that were held are lost.
  package internal(set) var blobCount = 0
  /// The documents about the account that are lost.
  package internal(set) var documents: [CID] = []

  /// The loss of a snapshot of whose CAR this is left.
  init(of snapshot: Snapshot, _ car: CopiedCAR, _ tree: SharedTrees.Tree) {
    isExact = car.left == nil
    blockCount =
      isExact ? 0 : snapshot.car.sectionCount - min(car.order.count, snapshot.car.sectionCount)
    guard !isExact else { return }
    (records, recordCount) = (tree.found.missingRecords, tree.found.missingRecordCount)
    switch tree.found.commitError {
    case .commitMissing(let commit): whole = "its commit \(commit) is lost"
    case let error?: whole = "\(error)"
    case nil:
      guard let root = tree.found.commit?.data, tree.found.missingNodes.first == root else {
        return
      }
      whole = "the root of its tree, \(root), is lost"
    }
  }

  /// Whether nothing is lost.
  package var isNone: Bool { isExact && blobCount == 0 && documents.isEmpty }
}
