internal import IPLD

extension PLCHistory {
  /// Returns which of the account's keys signed a commit, and whether it was valid at that time.
  ///
  /// Keys that held at that time are tried first, so that one check is enough for nearly every
  /// commit; in the worst case each key of the history is tried once, up to
  /// ``SignatureVerdict/maximumKeys``.
  package func judge(_ commit: Commit, now: UnixTime) -> SignatureVerdict {
    let time = SignatureVerdict.RevisionTime(
      of: commit, now: now, notBefore: spans.first?.from ?? SignatureVerdict.earliest)
    return SignatureVerdict(signer: signer(of: commit, time, now), revisionTime: time)
  }

  private func signer(
    of commit: Commit, _ revisionTime: SignatureVerdict.RevisionTime, _ now: UnixTime
  ) -> SignatureVerdict.Signer {
    guard commit.did == did else { return .otherAccount(commit.did) }
    // A time that has not come, or never was, says nothing about which key held.
    let time: UnixTime? =
      switch revisionTime {
      case .plausible(let time): time
      case .future: now
      case .impossible, .none: nil
      }
    var trial = Trial(of: commit)
    let holding = keyPeriods.reversed().filter { holds($0, at: time) }
    for period in holding {
      if trial.isSigned(by: period.key) {
        return period.isCurrent ? .currentKey(period) : .formerKey(period)
      }
    }
    let lasting = Set(keyPeriods.map(\.key))
    for operation in operations {
      guard let other = operation.nullifiedBy, let key = operation.signingKey,
        !lasting.contains(key)
      else { continue }
      if trial.isSigned(by: key) {
        return .nullifiedKey(key, operation: operation.cid, nullifiedBy: other)
      }
    }
    for period in keyPeriods.reversed() {
      if trial.isSigned(by: period.key) { return untimely(period.key, time) }
    }
    if trial.isExhausted { return .tooManyKeys }
    return trial.count == 0 ? .noKeyNamed : .noKey(keyCount: trial.count)
  }

  /// The keys that were tried on a commit, each once, and no more of them than an honest account
  /// ever has.
  private struct Trial {
    private let commit: Commit
    private let digest: SHA256Digest
    private var tried: Set<VerificationKey> = []
    /// Whether there was a key too many to be tried.
    private(set) var isExhausted = false
    /// How many were tried.
    var count: Int { tried.count }

    init(of commit: Commit) {
      self.commit = commit
      let message = commit.unsignedBytes
      digest = SHA256.digest(of: message.span)
    }

    /// Whether a key signed the commit; false for one that was tried before, and for one too many.
    mutating func isSigned(by key: VerificationKey) -> Bool {
      guard !tried.contains(key) else { return false }
      guard tried.count < SignatureVerdict.maximumKeys else {
        isExhausted = true
        return false
      }
      tried.insert(key)
      return key.verifies(commit.signature, of: digest)
    }
  }

  /// The verdict on a signature by a key that was not valid at this time.
  private func untimely(_ key: VerificationKey, _ time: UnixTime?) -> SignatureVerdict.Signer {
    let periods = keyPeriods.filter { $0.key == key }
    guard let before = periods.last(where: { period in !isBefore(time, period.from) })
    else { return .laterKey(periods[0]) }
    if let tombstone = end(before) { return .afterTombstone(before, tombstone: tombstone.cid) }
    return .expiredKey(before)
  }

  /// The tombstone, if it was what ended a key's time.
  private func end(_ period: KeyPeriod) -> Operation? {
    tombstone.flatMap { period == keyPeriods.last && period.until == $0.receivedAt ? $0 : nil }
  }

  /// Whether one time is before another, both of which are known.
  private func isBefore(_ time: UnixTime?, _ other: UnixTime?) -> Bool {
    guard let time, let other else { return false }
    return time < other
  }

  /// Whether a key held at a time, or a little earlier or later; without a time, that it did once
  /// is enough.
  private func holds(_ period: KeyPeriod, at time: UnixTime?) -> Bool {
    guard let time else { return true }
    let clocks = SignatureVerdict.clockTolerance
    guard !isBefore(time, period.from?.advanced(by: -clocks)) else { return false }
    guard let until = period.until else { return true }
    // After a tombstone there is no new server whose turn it could be.
    let tolerance = end(period) == nil ? SignatureVerdict.formerKeyTolerance : clocks
    return time <= until.advanced(by: tolerance)
  }
}

extension SignatureVerdict.RevisionTime {
  /// What a commit's revision says of the time.
  init(of commit: Commit, now: UnixTime, notBefore: UnixTime) {
    guard let rev = commit.rev else {
      self = .none
      return
    }
    let time = UnixTime(rev)
    let earliest = max(
      notBefore.advanced(by: -SignatureVerdict.clockTolerance), SignatureVerdict.earliest)
    if time > now.advanced(by: SignatureVerdict.clockTolerance) {
      self = .future(time)
    } else if time < earliest {
      self = .impossible(time)
    } else {
      self = .plausible(time)
    }
  }
}

extension DIDDocument {
  /// Says whether the key in this document signed a commit.
  ///
  /// All that there is for a `did:web`, which has no history; it is weaker, and the verdict says
  /// so.
  package func judge(_ commit: Commit, now: UnixTime) -> SignatureVerdict {
    let time = SignatureVerdict.RevisionTime(
      of: commit, now: now, notBefore: SignatureVerdict.earliest)
    let signer: SignatureVerdict.Signer
    if commit.did != id {
      signer = .otherAccount(commit.did)
    } else if let signingKey {
      signer = commit.isSigned(by: signingKey) ? .documentKey(signingKey) : .noKey(keyCount: 1)
    } else {
      signer = .noKeyNamed
    }
    return SignatureVerdict(signer: signer, revisionTime: time)
  }
}
