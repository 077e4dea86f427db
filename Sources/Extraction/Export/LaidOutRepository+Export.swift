internal import ATProtocol
internal import Repository
package import Snapshots

extension LaidOutRepository {
  /// Why there may be records that an export of it does not have; nil if all are there.
  package var whyRecordsMayBeMissing: String? {
    if let why = flaw ?? tree.whyNoCommit { return why }
    if let problem = tree.treeProblems.first(where: { !$0.isOfOneNode }) { return "\(problem)" }
    let lostCount = tree.missingNodes.count + tree.treeProblemCount
    return lostCount > 0 ? "\(lostCount) parts of the tree of records are not there" : nil
  }
}
