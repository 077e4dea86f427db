package import ATProtocol

/// What is proven of a snapshot, level by level, each with its evidence.
///
/// None implies another: bytes may be whole and signed by an unknown key, or genuine and partial.
package struct ProofLevels: Sendable {
  /// A level.
  package enum Level: String, CaseIterable, Sendable {
    /// Every byte matches the CID that it is stored under.
    case intact
    /// The tree of records keeps its rules, and all of it is here.
    case wellFormed = "well-formed"
    /// A key of the account signed the commit.
    case signed
    /// That key follows from the DID, by a history that leads back to its first operation.
    case identityProven = "identity-proven"
    /// The snapshot follows from the one before it: no earlier revision, and no other commit of the
    /// same.
    case continuous
    /// No blob is missing, be it referenced or listed, and every record can be read.
    case complete
  }

  /// Whether a level holds.
  package struct Finding: Equatable, Sendable {
    /// Whether it does; nil if unknown.
    package let isHeld: Bool?
    /// Why.
    package let why: String

    /// What was found, and why.
    package init(_ isHeld: Bool?, _ why: String) { (self.isHeld, self.why) = (isHeld, why) }

    /// The finding about a signature.
    package init(_ verdict: SignatureVerdict) { self.init(verdict.isGenuine, "\(verdict)") }

    /// Whether a commit is signed by a key that was given.
    package init(_ commit: Commit, by key: VerificationKey) {
      let isSigned = commit.isSigned(by: key)
      self.init(isSigned, isSigned ? "signed with the key given" : "not signed with the key given")
    }

    /// Whether a commit is signed by a key that its account had, by a DID document or a PLC log.
    ///
    /// - Throws: `PLCLogError` for what is neither, `PLCFault` for an invalid log.
    package init(_ commit: Commit, identity: [UInt8], now: UnixTime) throws {
      if let document = try? DIDDocument(identity.span) {
        self.init(document.judge(commit, now: now))
      } else {
        let log = try PLCLog(identity.span, of: commit.did)
        self.init(try PLCHistory(validating: log, of: commit.did).judge(commit, now: now))
      }
    }
  }

  private var findings: [Level: Finding] = [:]

  init() {}

  /// What was found about a level.
  package internal(set) subscript(level: Level) -> Finding {
    get { findings[level] ?? Finding(nil, "it was not checked") }
    set { findings[level] = newValue }
  }

  /// What speaks against the account having made it: its signature, its identity, its history.
  package var doubts: [String] {
    var doubts: [String] = []
    for level: Level in [.signed, .identityProven, .continuous] {
      // A key that did not sign proves no identity either: this is reported once.
      let finding = self[level]
      if finding.isHeld == false, !doubts.contains(finding.why) { doubts.append(finding.why) }
    }
    return doubts
  }
}

/// How to judge the levels of proof, apart from what the archive holds: the time, to detect
/// revisions in the future, and the key that must have signed; nil to use what the archive holds.
package typealias ProofTerms = (now: UnixTime, key: VerificationKey?)
