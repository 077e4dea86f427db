package import IPLD

/// Which of an account's keys signed a commit, and whether that key was valid at the time that the
/// commit's revision claims.
package struct SignatureVerdict: Hashable, Sendable {
  /// Who signed.
  package enum Signer: Hashable, Sendable {
    /// The current key.
    case currentKey(KeyPeriod)
    /// A key that was valid at the revision's time and was replaced later.
    ///
    /// Genuine. An account that moved to another server and has not written since has such a
    /// commit: the import keeps the old signature.
    case formerKey(KeyPeriod)
    /// A key that was replaced well before the revision's time.
    case expiredKey(KeyPeriod)
    /// A key that became the account's only after the revision's time.
    case laterKey(KeyPeriod)
    /// A key that only a nullified operation named: the operation, and the one that nullified it.
    case nullifiedKey(VerificationKey, operation: CID, nullifiedBy: CID)
    /// The account's last key, after the account had been deleted.
    case afterTombstone(KeyPeriod, tombstone: CID)
    /// The key in the DID document, which says nothing of the past: less than a history proves.
    case documentKey(VerificationKey)
    /// None of the keys that the account has had, or that its document names: this many.
    case noKey(keyCount: Int)
    /// None of as many keys as are tried, and the account's log names more.
    case tooManyKeys
    /// The account has named no key that could have signed it.
    case noKeyNamed
    /// The commit is another account's.
    case otherAccount(DID)
  }

  /// What the commit's revision says of the time.
  package enum RevisionTime: Hashable, Sendable {
    /// A plausible time.
    case plausible(UnixTime)
    /// A time in the future.
    case future(UnixTime)
    /// A time before AT Protocol, or before the account was created.
    case impossible(UnixTime)
    /// The commit is of version 2 and has no revision.
    case none
  }

  /// Who signed.
  package let signer: Signer
  /// What the revision says of the time.
  ///
  /// One that is odd leaves the signature genuine: the account's server chooses it.
  package let revisionTime: RevisionTime

  /// A verdict.
  package init(signer: Signer, revisionTime: RevisionTime) {
    self.signer = signer
    self.revisionTime = revisionTime
  }

  /// Whether the account's own key of that time signed the commit.
  package var isGenuine: Bool {
    switch signer {
    case .currentKey, .formerKey, .documentKey: true
    default: false
    }
  }

  /// The key that signed, if it is known.
  package var key: VerificationKey? {
    switch signer {
    case .currentKey(let period), .formerKey(let period), .expiredKey(let period),
      .laterKey(let period), .afterTombstone(let period, _):
      period.key
    case .nullifiedKey(let key, _, _), .documentKey(let key): key
    case .noKey, .tooManyKeys, .noKeyNamed, .otherAccount: nil
    }
  }
}

/// The tolerances for times that different clocks have set.
extension SignatureVerdict {
  /// How much later than the end of its key's time a revision may be: one hour.
  ///
  /// Between the operation that names the new server's key and the deactivation of the old server,
  /// the old one may still write. It costs no security: the owner of a key can put any earlier
  /// revision into a commit.
  package static let formerKeyTolerance = UnixTime.hour
  /// How much earlier than the beginning of its key's time a revision may be, or later than now:
  /// ten minutes.
  ///
  /// Clocks differ, and servers make an account's first commit before they tell the directory.
  package static let clockTolerance = UnixTime.hour / 6
  /// How many keys of an account are tried on a commit: real accounts have had some ten, and a
  /// hostile log could name thousands.
  package static let maximumKeys = 256
  /// 2022-01-01: there was no repository before.
  static let earliest = UnixTime(microseconds: 1_640_995_200_000_000)
}

extension SignatureVerdict: CustomStringConvertible {
  /// The message for people: who signed, and what is odd about the revision.
  package var description: String {
    switch revisionTime {
    case .plausible: "\(signer)"
    case .future(let time): "\(signer); its revision is in the future, \(time)"
    case .impossible(let time): "\(signer); its revision is before the account existed, \(time)"
    case .none: "\(signer); it has no revision, so the time is unknown"
    }
  }
}

extension SignatureVerdict.Signer: CustomStringConvertible {
  /// The message for people.
  package var description: String {
    switch self {
    case .currentKey(let period):
      "signed with the account's current key, valid since \(period.start)"
    case .formerKey(let period):
      "signed with the key that was valid from \(period.start) until \(period.end)"
    case .expiredKey(let period):
      "signed with a former key after it was replaced: it was valid until \(period.end)"
    case .laterKey(let period):
      "signed with a key that became valid only after the revision, at \(period.start)"
    case .nullifiedKey(_, let operation, _):
      "signed with a key of an operation that was nullified, \(operation)"
    case .afterTombstone(let period, _):
      "signed with the account's last key after the account was deleted at \(period.end)"
    case .documentKey:
      "signed with the key in the DID document, which does not prove the key's history"
    case .noKey(1): "not signed with the account's key"
    case .noKey(let count): "signed with none of the \(count) keys that the account has had"
    case .tooManyKeys:
      "signed with none of \(SignatureVerdict.maximumKeys) of the account's keys; no more are tried"
    case .noKeyNamed: "the account names no key that could have signed it"
    case .otherAccount(let did): "the commit belongs to another account, \(did)"
    }
  }
}

extension KeyPeriod {
  /// The beginning, for messages.
  fileprivate var start: String { from.map { "\($0)" } ?? Self.unknown }
  /// The end, for messages.
  fileprivate var end: String { until.map { "\($0)" } ?? (isCurrent ? "now" : Self.unknown) }

  private static let unknown = "a time that the PLC log does not give"
}

extension Commit {
  /// Whether the account's key signed this commit.
  package func isSigned(by key: VerificationKey) -> Bool {
    let message = unsignedBytes
    return key.verifies(signature, of: message.span)
  }
}
