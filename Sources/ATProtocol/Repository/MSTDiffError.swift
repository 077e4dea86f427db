package import IPLD

/// Why two trees cannot be compared.
package enum MSTDiffError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A node is not there that is needed; the key is the last one before it, and empty if there is
  /// none.
  case missingNode(CID, MSTDiff.Side, behind: [UInt8])
  /// A tree breaks a rule.
  case malformed(MSTProblem, MSTDiff.Side)

  /// What a person reads.
  package var description: String {
    switch self {
    case .missingNode(let node, let side, let key):
      "\(name(side)) lacks its node \(node), which has records "
        + (key.isEmpty ? "at its beginning" : "behind \(MSTProblem.quoted(key))")
    case .malformed(let problem, let side): "\(name(side)) is malformed: \(problem)"
    }
  }

  private func name(_ side: MSTDiff.Side) -> String {
    side == .old ? "the old tree of records" : "the new tree of records"
  }
}
