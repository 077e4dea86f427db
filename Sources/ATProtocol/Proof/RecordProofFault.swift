package import IPLD

/// Why a CAR is not a proof of a record, or of its absence.
package enum RecordProofFault: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// It is longer than ``RecordProof/maximumLength``.
  case tooLong
  /// It is not a CAR.
  case notACAR(CARError)
  /// It has this many roots, not one.
  case notOneRoot(Int)
  /// A block does not hash to its CID, or its hash is of a kind that is not known here.
  case wrongBlock(CID)
  /// A block is not there that is needed.
  case missingBlock(CID)
  /// The root is not a commit.
  case notACommit(RepositoryError)
  /// A tree node on the way is malformed.
  case illegalNode(MSTProblem)
  /// It does not hold exactly one record, so the path has to be given: a record that is not there
  /// may have any of the paths in a gap of the tree.
  case pathUnknown

  /// Too long, or not what it claims to be.
  package var faultKind: FaultKind {
    switch self {
    case .tooLong: .limit
    case .notACAR(let error): error.faultKind
    case .pathUnknown: .refused
    default: .damage
    }
  }

  /// The message for people.
  package var description: String {
    switch self {
    case .tooLong: "the proof is over \(RecordProof.maximumLength) bytes"
    case .notACAR(let error): "the proof is not a CAR: \(error)"
    case .notOneRoot(let count): "the proof names \(count) roots; it must name one, the commit"
    case .wrongBlock(let cid): "a block of the proof does not match its CID, \(cid)"
    case .missingBlock(let cid): "the proof is incomplete: it lacks the block \(cid)"
    case .notACommit(let error): "the proof's root is not a commit: \(error)"
    case .illegalNode(let problem): "the tree in the proof is not legal: \(problem)"
    case .pathUnknown: "the proof can be about several records"
    }
  }
}
