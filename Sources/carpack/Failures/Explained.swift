internal import ATProtocol
internal import IPLD
internal import Snapshots

/// An error that the command knows: what it means to the one who asked.
///
/// Each type of error says so in one place. An error of a type that does not is a defect of carpack,
/// and ends with status 1.
protocol Explained: Error {
  /// The exit status, and what to do about it.
  var explanation: Explanation { get }
  /// What a person reads.
  var sentence: String { get }
}

/// An exit status, and what to do about it; nil if there is nothing to say.
typealias Explanation = (status: ExitStatus, hint: String?)

extension Explained {
  /// Its own words.
  var sentence: String { "\(self)" }
}

/// That bytes are not of the format that they should be: it knows where in them, and not of which
/// file they are.
protocol FormatError: Explained {}

extension FormatError {
  /// They are damaged.
  var explanation: Explanation { (.damaged, nil) }
}

extension CARError: FormatError {}
extension DAGCBORError: FormatError {}
extension MSTDiffError: FormatError {}
extension MSTProblem: FormatError {}
extension RecordProofFault: FormatError {}
extension RepositoryError: FormatError {}
extension SnapshotError: FormatError {}
extension SnapshotHistory.Break: FormatError {}

extension PLCLogError: Explained {
  var explanation: Explanation { (.damaged, nil) }
}
