internal import ATProtocol
internal import Repository
package import Snapshots

extension LaidOutRepository {
  /// Why there may be records that an export of it does not have; nil if all are there.
  ///
  /// A tree may break rules and have all of its records, such as one with a key that is no path.
  package var whyRecordsMayBeMissing: String? {
    if let why = flaw ?? tree.whyNoCommit { return why }
    var lostCount = tree.missingNodes.count
    for problem in tree.treeProblems {
      switch problem.kind {
      case .illegalKey, .wrongLayer, .emptyLeaf, .untrimmedTop: continue
      case .prefixNotMaximal where problem.key != nil: continue
      case .malformedNode, .prefixNotMaximal, .missing: lostCount += 1
      case .keysNotAscending, .cycle, .repeatedNode, .tooDeep: return "\(problem)"
      }
    }
    // Those that were not listed may be of any kind.
    if tree.treeProblemCount > tree.treeProblems.count {
      return "the tree of records is malformed (problems: \(tree.treeProblemCount))"
    }
    return lostCount > 0 ? "\(lostCount) parts of the tree of records are not there" : nil
  }
}
