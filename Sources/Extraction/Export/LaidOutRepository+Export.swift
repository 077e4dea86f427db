internal import ATProtocol
internal import Repository
package import Snapshots

extension LaidOutRepository {
  /// Why there may be records that an export of it does not have; nil if all are there.
  package var whyRecordsMayBeMissing: String? {
    if let why = flaw ?? tree.whyNoCommit { return why }
    let count = tree.missingNodes.count
    return count > 0 ? "\(count) parts of the tree of records are missing" : nil
  }

  /// How many parts of the tree are not there, and with them all records below; without its commit
  /// that is all of it.
  package var missingNodeCount: Int { tree.missingNodes.count + (tree.commit == nil ? 1 : 0) }
}
