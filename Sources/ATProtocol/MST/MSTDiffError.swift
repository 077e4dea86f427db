package import IPLD

/// Why two trees cannot be compared.
package struct MSTDiffError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong; of a node that is missing, with the last key before it, if there is one.
  package let problem: MSTProblem
  /// In which tree.
  package let side: MSTDiff.Side

  /// A problem with one of the trees.
  package init(_ problem: MSTProblem, _ side: MSTDiff.Side) {
    (self.problem, self.side) = (problem, side)
  }

  /// One of the trees is not what it must be.
  package var faultKind: FaultKind { .damage }

  /// The message for people.
  package var description: String {
    let tree = side == .old ? "the old tree of records" : "the new tree of records"
    guard problem.kind == .missing else { return "\(tree) is malformed: \(problem)" }
    return "\(tree) lacks its node \(problem.node), which holds the records "
      + (problem.key.map { "after \($0.shown)" } ?? "at its beginning")
  }
}
