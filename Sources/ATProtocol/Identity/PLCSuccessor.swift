package import IPLD

/// A signed operation to follow the last one of a PLC log, checked as the directory will check it.
package struct PLCSuccessor: Hashable, Sendable {
  /// Why the directory would refuse an operation, or apply it differently than intended.
  package enum Fault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The DID was ended.
    case ended
    /// The operation breaks a rule of the log.
    case broken(PLCFault)
    /// The log itself is not valid.
    case log(PLCFault)
    /// It is longer than the directory accepts, in bytes of DAG-CBOR.
    case tooLong(Int)
    /// It has more of something than the directory accepts.
    case tooMany(String)
    /// A text is longer than the directory accepts.
    case longText(String)
    /// A name occurs twice.
    case twice(String)
    /// It names no rotation key, and the account could never be changed again.
    case noRotationKey
    /// The signed operation differs from the requested one.
    case otherContent(String)
    /// The key is not among those that may sign.
    case strangeKey
    /// The directory's rate limit for the DID is reached.
    case tooOften(String)
    /// The key does not sign.
    case cannotSign

    /// The message for people.
    package var description: String {
      switch self {
      case .ended: "the DID was ended by a tombstone"
      case .broken(let fault): "the operation would be refused: \(fault)"
      case .log(let fault): "the PLC log is not valid: \(fault)"
      case .tooLong(let count):
        "the operation has \(count) bytes; the directory accepts at most \(PLCSuccessor.maximumLength)"
      case .tooMany(let what): "the operation has more than ten \(what)"
      case .longText(let what):
        "the operation has a \(what) that is longer than the directory accepts"
      case .twice(let text): "the operation has \(text) twice"
      case .noRotationKey:
        "the operation names no rotation key: the account could never be changed again"
      case .otherContent(let field):
        "the operation that the server signed differs from the one requested: its \(field)"
      case .strangeKey: "the key is not among the account's rotation keys"
      case .tooOften(let when): "the directory accepts at most \(when)"
      case .cannotSign: "the key cannot be used to sign"
      }
    }
  }

  /// The longest operation that the directory accepts, in bytes of DAG-CBOR with the signature; the
  /// specification says 7,500.
  package static let maximumLength = 4000

  /// The operation, signed.
  package let operation: IPLDValue
  /// Its CID.
  package let cid: CID

  /// Signs an operation that gives an account a new state.
  ///
  /// - Parameters:
  ///   - state: the new state.
  ///   - log: the account's log, as far as the directory has it.
  ///   - did: the account.
  ///   - key: one of the account's rotation keys.
  ///   - now: the time by the directory's clock.
  /// - Throws: ``Fault``.
  package init(
    _ state: PLCState, after log: PLCLog, of did: DID, signing key: PrivateKey, now: UnixTime
  ) throws(Fault) {
    let history = try Self.history(log, did)
    guard let last = history.current?.operation else { throw .ended }
    guard last.rotationKeys.contains(key.verificationKey) else { throw .strangeKey }
    var map = state.fields
    map["type"] = .string("plc_operation")
    map["prev"] = .string("\(last.cid)")
    guard let unsigned = try? DAGCBOREncoder.encode(.map(map)),
      let signature = try? key.sign(unsigned.span)
    else { throw .cannotSign }
    map["sig"] = .string(Base64.encodeURL(signature))
    try self.init(checking: .map(map), state, after: log, of: did, now: now)
  }

  /// Checks an operation that a server signed.
  ///
  /// - Parameters:
  ///   - operation: the operation.
  ///   - state: what it was asked to say.
  ///   - log: the account's log, as far as the directory has it.
  ///   - did: the account.
  ///   - now: the time by the directory's clock.
  /// - Throws: ``Fault``.
  package init(
    checking operation: IPLDValue, _ state: PLCState, after log: PLCLog, of did: DID, now: UnixTime
  ) throws(Fault) {
    let history = try Self.history(log, did)
    guard history.current != nil else { throw .ended }
    let asked = state.fields
    for field in asked.keys where operation[field] != asked[field] { throw .otherContent(field) }
    try Self.check(state)
    try history.checkPace(now)
    guard let bytes = try? DAGCBOREncoder.encode(operation) else { throw .otherContent("type") }
    guard bytes.count <= Self.maximumLength else { throw .tooLong(bytes.count) }
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    let next = log.adding(operation)
    let whole = try Self.history(next, did, Fault.broken)
    guard whole.current?.operation.cid == cid else { throw .ended }
    self.operation = operation
    self.cid = cid
  }

  private static func history(
    _ log: PLCLog, _ did: DID, _ fault: (PLCFault) -> Fault = Fault.log
  ) throws(Fault) -> PLCHistory {
    do throws(PLCFault) {
      return try PLCHistory(validating: log, of: did)
    } catch {
      throw fault(error)
    }
  }

  /// The directory's rules apart from those of the log.
  private static func check(_ state: PLCState) throws(Fault) {
    guard !state.rotationKeys.isEmpty else { throw .noRotationKey }
    for (what, count) in [
      ("rotation keys", state.rotationKeys.count), ("names", state.alsoKnownAs.count),
      ("services", state.services.count), ("keys", state.verificationMethods.count),
    ] where count > maximumItems { throw .tooMany(what) }
    for list in [state.rotationKeys, state.alsoKnownAs] {
      var seen: Set<String> = []
      for text in list where !seen.insert(text).inserted { throw .twice(text) }
    }
    func check(_ texts: some Sequence<String>, _ limit: Int, _ what: String) throws(Fault) {
      for text in texts where text.utf8.count > limit { throw .longText(what) }
    }
    try check(state.alsoKnownAs, 258, "name")
    try check(
      Array(state.services.keys) + state.verificationMethods.keys, 32, "name of a key or server")
    try check(state.services.values.map(\.type), 256, "type of a server")
    try check(state.services.values.map(\.endpoint), 512, "server")
    try check(state.rotationKeys + state.verificationMethods.values, 256, "key")
  }

  /// How many rotation keys, names, services or keys an operation may have.
  package static let maximumItems = 10
}

extension PLCHistory {
  /// Checks that the directory accepts more operations now: its limits are ten an hour, thirty a
  /// day and a hundred a week.
  ///
  /// - Parameters:
  ///   - now: the time by the directory's clock.
  ///   - count: how many.
  package func checkPace(_ now: UnixTime, adding count: Int = 1) throws(PLCSuccessor.Fault) {
    for (limit, hours, text) in [
      (10, 1, "ten operations an hour"), (30, 24, "thirty operations a day"),
      (100, 7 * 24, "a hundred operations a week"),
    ] {
      let begin = now.advanced(by: -Int64(hours) * UnixTime.hour)
      let recent = operations.count { $0.receivedAt.map { $0 > begin } ?? false }
      if recent + count > limit { throw .tooOften(text) }
    }
  }
}

extension PLCLog {
  /// The log with one operation more, without a time: only the directory's clock gives it one.
  func adding(_ operation: IPLDValue) -> PLCLog {
    PLCLog(entries: entries + [Entry(operation, operation)])
  }

  /// The state that the last operation gives the account; nil if that ended it.
  package var state: PLCState? {
    entries.last { !$0.isNullified }.flatMap { PLCState($0.operation) }
  }
}
