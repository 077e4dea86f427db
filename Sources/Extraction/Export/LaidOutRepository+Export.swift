internal import ATProtocol
internal import Repository
package import Snapshots

extension LaidOutRepository {
  /// Why an export may lack records; nil if it has all.
  package var whyRecordsMayBeMissing: String? {
    if let why = flaw ?? tree.whyNoCommit { return why }
    let count = tree.missingNodes.count
    return count > 0 ? "missing parts of the tree of records: \(count)" : nil
  }

  /// How many parts of the tree are missing, with all records below; without the commit that is the
  /// whole tree.
  package var missingNodeCount: Int { tree.missingNodes.count + (tree.commit == nil ? 1 : 0) }
}
