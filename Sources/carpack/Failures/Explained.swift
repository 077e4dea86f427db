internal import ATProtocol
internal import IPLD
internal import Snapshots
internal import Terminal

extension CARError: FormatError {}
extension DAGCBORError: FormatError {}
extension MSTDiffError: FormatError {}
extension MSTProblem: FormatError {}
extension RecordProofFault: FormatError {}
extension RepositoryError: FormatError {}
extension SnapshotError: FormatError {
  var explanation: Explanation {
    guard case .notPacked = self else { return (.damaged, nil) }
    return (.incomplete, "\"carpack ls\" marks what is missing")
  }
}
extension SnapshotHistory.Break: FormatError {}

extension PLCLogError: Explained {
  var explanation: Explanation { (.damaged, nil) }
}
