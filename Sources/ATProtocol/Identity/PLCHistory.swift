package import IPLD

/// The proven history of a `did:plc`: from the DID to its first operation, and from each operation
/// to the next.
///
/// It proves the operations, their order and who signed them: the DID is the hash of the first
/// one, and each names the one before it and is signed with one of that one's rotation keys. No
/// signature covers when the directory received an operation, or where a log ends. Times, and that
/// nothing follows the last operation, are the directory's word; times are only checked against one
/// another, and a log that leaves them out proves the rest. Source:
/// [did:plc](https://web.plc.directory/spec/v0.1/did-plc).
package struct PLCHistory: Hashable, Sendable {
  /// What an operation does.
  package enum Kind: String, CaseIterable, Sendable {
    /// Creates the DID, in the form of 2022.
    case legacyCreate = "create"
    /// Creates the DID, or replaces its whole state.
    case update = "operation"
    /// Ends the DID.
    case tombstone
  }

  /// One operation that the directory accepted.
  package struct Operation: Hashable, Sendable {
    /// What it does.
    package let kind: Kind
    /// Its CID, which was computed.
    package let cid: CID
    /// When the directory received it, as the directory says; nil if the log does not.
    package let receivedAt: UnixTime?
    /// The rotation key that signed it.
    package let signer: VerificationKey
    /// The keys that may sign what follows it, in the order of their authority.
    package let rotationKeys: [VerificationKey]
    /// The key that signs the repository, if it names one that can be used.
    package let signingKey: VerificationKey?
    /// The handles it names, the first being the account's.
    package let handles: [Handle]
    /// The server it names, if it can be used.
    package let pds: ServerOrigin?
    /// The operation that nullified it, if one did.
    package fileprivate(set) var nullifiedBy: CID?
    /// Where its signer stands among the rotation keys of the operation before.
    fileprivate let signerRank: Int
  }

  /// A span of time in which one operation was valid.
  package struct Span: Hashable, Sendable {
    /// The operation.
    package let operation: Operation
    /// The beginning: when the directory received it, if that is known.
    package var from: UnixTime? { operation.receivedAt }
    /// The end: when the directory received the next one; nil if it is still valid, or that is not
    /// known.
    package let until: UnixTime?
    /// Whether it is still valid.
    package let isCurrent: Bool
  }

  /// The longest time, in microseconds, after which an operation may still be nullified.
  static let recoveryWindow = 72 * UnixTime.hour

  /// The account.
  package let did: DID
  /// All operations, the oldest first, those included that were nullified.
  package let operations: [Operation]
  /// What was valid when, the oldest first; the last span has an end if a tombstone follows.
  package let spans: [Span]
  /// The operation that ended the DID, if one did.
  package let tombstone: Operation?
  /// Which signing key was valid when; neighbours that name the same key are one period.
  package let keyPeriods: [KeyPeriod]

  /// The operations that later ones nullified.
  package var nullified: [Operation] { operations.filter { $0.nullifiedBy != nil } }

  /// What is valid now; nil after a tombstone.
  package var current: Span? { tombstone == nil ? spans.last : nil }

  /// Checks a log of `did` from its first operation to its last.
  ///
  /// It needs one pass, with at most ten signature checks for each operation.
  ///
  /// - Throws: ``PLCFault``: the first rule that is broken, and by which operation.
  package init(validating log: PLCLog, of did: DID) throws(PLCFault) {
    guard did.method == "plc" else { throw PLCFault(.notAPLC) }
    guard !log.entries.isEmpty else { throw PLCFault(.empty) }
    var checker = Checker(did)
    for (index, entry) in log.entries.enumerated() {
      do throws(PLCFault.Reason) {
        try checker.take(entry)
      } catch {
        throw PLCFault(error, operation: index)
      }
    }
    for (index, entry) in log.entries.enumerated()
    where entry.createdAt != nil
      && entry.isNullified != (checker.operations[index].nullifiedBy != nil)
    {
      throw PLCFault(.wrongMark(isNullified: entry.isNullified), operation: index)
    }

    let standing = checker.standing.map { checker.operations[$0] }
    var spans: [Span] = []
    for (index, operation) in standing.enumerated() where operation.kind != .tombstone {
      let next = index + 1 < standing.count ? standing[index + 1] : nil
      spans.append(
        Span(operation: operation, until: next?.receivedAt, isCurrent: next == nil))
    }
    self.did = did
    operations = checker.operations
    self.spans = spans
    tombstone = standing.last.flatMap { $0.kind == .tombstone ? $0 : nil }
    keyPeriods = KeyPeriod.list(spans)
  }

  /// Repeats what the directory did when it received each operation.
  ///
  /// Invariants:
  /// 1. `standing` are the operations that have not been taken back, oldest first, each following
  ///    the one before it.
  /// 2. `places[cid]` is the number of the operation, and `standingPlaces[number]` its place in
  ///    `standing` if it stands.
  private struct Checker {
    let did: DID
    var operations: [Operation] = []
    var standing: [Int] = []
    private var standingPlaces: [Int?] = []
    private var places: [CID: Int] = [:]
    private var keys: PLCOperation.KnownKeys = [:]

    init(_ did: DID) { self.did = did }

    mutating func take(_ entry: PLCLog.Entry) throws(PLCFault.Reason) {
      let operation = try PLCOperation(entry.operation, keys: &keys)
      guard entry.cid == operation.cid else { throw .wrongCID(entry.cid) }
      let time = entry.createdAt.flatMap { UnixTime($0) }
      guard time != nil || entry.createdAt == nil else { throw .malformedTime }
      if let time, let last = operations.last?.receivedAt, time < last { throw .timeGoesBack }
      let place: Int
      let (allowed, rank): ([VerificationKey], Int)
      if operations.isEmpty {
        place = 0
        (allowed, rank) = try checkGenesis(operation)
      } else {
        let previous = try previousPlace(operation)
        place = previous + 1
        (allowed, rank) = try checkSuccessor(operation, of: previous, at: time)
      }
      for number in standing[place...] {
        operations[number].nullifiedBy = operation.cid
        standingPlaces[number] = nil
      }
      standing.removeSubrange(place...)
      places[operation.cid] = operations.count
      standingPlaces.append(standing.count)
      standing.append(operations.count)
      operations.append(
        Operation(
          kind: operation.kind, cid: operation.cid, receivedAt: time, signer: allowed[rank],
          rotationKeys: operation.rotationKeys, signingKey: entry.signingKey,
          handles: entry.handles, pds: entry.pds, signerRank: rank))
    }

    private func checkGenesis(_ operation: PLCOperation) throws(PLCFault.Reason)
      -> ([VerificationKey], Int)
    {
      guard operation.prev == nil, operation.kind != .tombstone else { throw .notAGenesis }
      let name = operation.cid.createdDID
      guard name == did.text else { throw .otherDID(name) }
      guard let rank = operation.signer(among: operation.rotationKeys) else { throw .notSigned }
      return (operation.rotationKeys, rank)
    }

    /// Where in `standing` the operation is that this one names as the one before it.
    private func previousPlace(_ operation: PLCOperation) throws(PLCFault.Reason) -> Int {
      guard operation.kind != .legacyCreate else { throw .lateCreate }
      guard let prev = operation.prev, let number = places[prev] else { throw .unknownPrevious }
      guard operations[number].kind != .tombstone else { throw .previousTombstone }
      guard let place = standingPlaces[number] else { throw .previousNullified }
      return place
    }

    /// An operation may follow any that stands; those that followed it before are nullified.
    private func checkSuccessor(
      _ operation: PLCOperation, of place: Int, at time: UnixTime?
    ) throws(PLCFault.Reason) -> ([VerificationKey], Int) {
      let keys = operations[standing[place]].rotationKeys
      guard place + 1 < standing.count else {
        guard let rank = operation.signer(among: keys) else { throw .notSigned }
        return (keys, rank)
      }
      let disputed = operations[standing[place + 1]]
      guard let rank = operation.signer(among: keys[..<disputed.signerRank]) else {
        let isSigned = operation.signer(among: keys[disputed.signerRank...]) != nil
        throw isSigned ? .notOfHigherAuthority : .notSigned
      }
      if let time, let before = disputed.receivedAt {
        guard time <= before.advanced(by: recoveryWindow) else { throw .tooLate }
      }
      return (keys, rank)
    }
  }
}

extension PLCHistory {
  /// The rotation keys that the log shows to be a server's: a server takes no account whose DID
  /// lacks its key, so a key that came alone, with the operation that first names the server, is
  /// its own.
  ///
  /// One that came to stand before all others is not counted: owners put theirs there.
  package func rotationKeys(of server: ServerOrigin) -> Set<String> {
    var found: Set<String> = []
    var before: Operation?
    for operation in spans.map(\.operation) {
      defer { before = operation }
      guard operation.pds == server, before?.pds != server else { continue }
      let old = before?.rotationKeys ?? []
      let new = operation.rotationKeys.filter { !old.contains($0) }
      if new.count == 1, operation.rotationKeys.count == 1 || operation.rotationKeys.first != new[0]
      {
        found.insert(new[0].didKey)
      }
    }
    return found
  }
}
