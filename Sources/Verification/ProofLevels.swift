package import ATProtocol

/// What is proven of a snapshot, one level upon the other, each with its evidence.
///
/// None implies another: bytes may be whole and signed by a stranger, or genuine and incomplete.
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
  package enum Finding: Equatable, Sendable {
    /// It does, because of this.
    case holds(String)
    /// The archive has nothing that would tell.
    case noEvidence(String)
    /// It does not, because of this.
    case fails(String)

    /// Whether it does; nil if nothing tells.
    package var isHeld: Bool? {
      switch self {
      case .holds: true
      case .noEvidence: nil
      case .fails: false
      }
    }

    /// Why.
    package var why: String {
      switch self {
      case .holds(let why), .noEvidence(let why), .fails(let why): why
      }
    }
  }

  private var findings: [Level: Finding] = [:]

  init() {}

  /// What was found about a level.
  package internal(set) subscript(level: Level) -> Finding {
    get { findings[level] ?? .noEvidence("it was not looked at") }
    set { findings[level] = newValue }
  }

  /// What speaks against the account having made it: its signature, its identity, its history.
  package var doubts: [String] {
    var doubts: [String] = []
    for level: Level in [.signed, .identityProven, .continuous] {
      // Who did not sign proves no identity either: that is said once.
      if case .fails(let why) = self[level], !doubts.contains(why) { doubts.append(why) }
    }
    return doubts
  }
}

/// What levels of proof are judged by beside what the archive holds: the time, to tell revisions of
/// the future, and the key that has to have signed; nil to go by what the archive holds.
package typealias ProofTerms = (now: UnixTime, key: VerificationKey?)
