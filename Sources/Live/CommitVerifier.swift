internal import ATProtocol
internal import Files
internal import IPLD
internal import LibC

/// Checks whether a commit is an account's own: by the history of its keys, if that is known, and
/// else by the key in its DID document.
///
/// An account that moved and has not written since has a commit that its former key signed, which
/// is as genuine as any. What a stranger's key signed is not, whatever a server or document says.
struct CommitVerifier: Sendable {
  private let did: DID
  /// The key in its DID document, or, if that names none that can be used, the one that it had
  /// before; nil if none is known.
  var key: VerificationKey?
  /// The history of its keys, checked back to the first operation; nil if it has none, or it could
  /// not be fetched.
  private let history: PLCHistory?
  /// Now, to tell revisions of the future.
  private let now: UnixTime

  /// A verifier.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - key: the key in its DID document.
  ///   - log: its log in the PLC directory, if it has one.
  ///   - now: the moment, in RFC 3339 and UTC.
  /// - Throws: ``BackupError/notGenuine(_:)`` for a log that does not hold; ``BackupError`` if `now`
  ///   is no such moment: without one nothing could be checked.
  init(did: DID, key: VerificationKey?, log: [UInt8]?, now: String) throws {
    guard let time = UnixTime(now) else {
      throw BackupError.system("read the clock: \(now)", EINVAL)
    }
    (self.did, self.key, self.now) = (did, key, time)
    do {
      history = try log.map { (log) throws in
        try PLCHistory(validating: PLCLog(log.span, of: did), of: did)
      }
    } catch {
      throw BackupError.notGenuine("the PLC log of \(did) does not hold: \(error)")
    }
  }

  /// Whether a key is known, so that a commit can be checked.
  var hasKey: Bool { key != nil || history.map { !$0.keyPeriods.isEmpty } ?? false }

  /// Makes sure that a commit is the account's own, as far as a key is known.
  ///
  /// - Throws: ``BackupError/notGenuine(_:)``.
  func check(_ commit: Commit) throws {
    guard commit.did == did else {
      throw BackupError.notGenuine(
        "the server sent the repository of \(commit.did), not of \(did)")
    }
    if let history, !history.keyPeriods.isEmpty {
      let verdict = history.judge(commit, now: now)
      guard verdict.isGenuine else { throw BackupError.notGenuine("the commit is \(verdict)") }
      return
    }
    if let key, !commit.isSigned(by: key) {
      throw BackupError.notGenuine("the commit is not signed with the account's key \(key)")
    }
  }
}
