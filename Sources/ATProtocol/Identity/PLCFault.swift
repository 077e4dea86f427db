package import IPLD

/// Why a PLC log does not lead from the DID to the account's keys, and at which operation.
package struct PLCFault: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rules that a log can break.
  package enum Reason: Error, Equatable, Sendable {
    /// The DID is of another method.
    case notAPLC
    /// There are no operations.
    case empty
    /// A field is missing or of the wrong form.
    case malformedField(String)
    /// A field is missing; or this field is unknown.
    case wrongFields(String?)
    /// The signed operation has this many bytes: more than the directory accepts.
    case tooLong(Int)
    /// It names more rotation keys than the directory accepts.
    case tooManyRotationKeys(Int)
    /// The CID that the directory gives is not that of the operation.
    case wrongCID(CID?)
    /// The signature is not 64 bytes in base 64 for URLs without padding.
    case malformedSignature
    /// The first operation does not begin a DID: it follows another one, or is a tombstone.
    case notAGenesis
    /// An operation of the form of 2022 that is not the first.
    case lateCreate
    /// The first operation hashes to this DID, not to the account's.
    case otherDID(String)
    /// It follows no operation that is in the log before it.
    case unknownPrevious
    /// It follows an operation that was nullified.
    case previousNullified
    /// It follows a tombstone.
    case previousTombstone
    /// None of the rotation keys of the operation before signed it.
    case notSigned
    /// It nullifies operations, but is not signed by a key of higher authority than the first of
    /// them was.
    case notOfHigherAuthority
    /// It nullifies operations that were older than 72 hours.
    case tooLate
    /// The directory's mark says "nullified" but no later operation nullified it, or the reverse.
    case wrongMark(isNullified: Bool)
    /// The time at which the directory received it is malformed.
    case malformedTime
    /// It is older than the operation before it.
    case timeGoesBack
  }

  /// The broken rule.
  package let reason: Reason
  /// The place of the operation in the log, counted from 0; nil if the fault is not in one.
  package let operation: Int?

  /// A broken rule and its place.
  package init(_ reason: Reason, operation: Int? = nil) {
    self.reason = reason
    self.operation = operation
  }

  /// The message for people.
  package var description: String {
    let place = operation.map { "operation \($0 + 1) of the PLC log" } ?? "the PLC log"
    return "\(place) \(reason)"
  }
}

extension PLCFault.Reason: CustomStringConvertible {
  /// The message for people, after the name of the operation.
  package var description: String {
    switch self {
    case .notAPLC: "belongs to no did:plc"
    case .empty: "is empty"
    case .malformedField(let name): "is malformed: its field \(name)"
    case .wrongFields(nil): "is malformed: a field is missing"
    case .wrongFields(let name?):
      "has an unknown field, \"\(name.unicodeScalars.prefix(64).map { $0.escaped(asASCII: true) }.joined())\""
    case .tooLong(let count):
      "has \(count) bytes; the directory accepts at most \(PLCOperation.maximumLength)"
    case .tooManyRotationKeys(let count): "names \(count) rotation keys, too many"
    case .wrongCID: "does not hash to the CID that the directory gives for it"
    case .malformedSignature:
      "has a malformed signature: it must be 64 bytes in base64url without padding"
    case .notAGenesis: "is the first, but does not create a DID"
    case .lateCreate: "has the form of 2022, which only the first operation may have"
    case .otherDID(let did): "creates another account, \(did)"
    case .unknownPrevious: "follows an operation that is not in the log"
    case .previousNullified: "follows an operation that was nullified"
    case .previousTombstone: "follows the operation that deleted the account"
    case .notSigned: "is not signed with a rotation key of the operation before it"
    case .notOfHigherAuthority:
      "nullifies operations, but is not signed with a rotation key of higher authority"
    case .tooLate: "nullifies an operation that was older than 72 hours"
    case .wrongMark(isNullified: true): "is marked as nullified, but no operation nullified it"
    case .wrongMark(isNullified: false):
      "was nullified by a later one, but is not marked as nullified"
    case .malformedTime: "has no readable time"
    case .timeGoesBack: "is older than the one before it"
    }
  }
}
