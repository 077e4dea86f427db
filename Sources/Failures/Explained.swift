package import ATProtocol
package import IPLD
package import Snapshots
package import Terminal

extension CARError: FormatError {}
extension DAGCBORError: FormatError {}
extension MSTDiffError: FormatError {}
extension MSTProblem: FormatError {}
extension RecordProofFault: FormatError {
  package var explanation: Explanation {
    self == .pathUnknown
      ? (.usage, "name yours with --record COLLECTION/RKEY") : (ExitStatus(faultKind), nil)
  }
}
extension RepositoryError: FormatError {}
extension SnapshotError: FormatError {
  package var explanation: Explanation {
    guard case .notPacked = self else { return (ExitStatus(faultKind), nil) }
    return (.incomplete, "\"carpack ls\" marks what is missing")
  }
}
extension SnapshotHistory.Break: FormatError {}

extension PLCLogError: Explained {
  package var explanation: Explanation {
    (ExitStatus(faultKind), nil)
  }
}
