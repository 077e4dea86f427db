internal import ATProtocol
internal import Archive
internal import Files
internal import Live
internal import Snapshots
internal import XRPC

/// What came of a backup of an account, as the database keeps it.
package struct FleetOutcome: Equatable, Sendable {
  /// What came of it, in a word.
  package enum Verdict: String, CaseIterable, Sendable {
    /// All that there is is in the archive.
    case complete
    /// Something is missing.
    case incomplete
    /// It could not be backed up.
    case failed
  }

  /// What the account is.
  package enum State: String, CaseIterable, Sendable {
    /// It can be backed up.
    case active
    /// Its owner has deactivated it.
    case deactivated
    /// The server's operator has suspended it.
    case suspended
    /// The server's operator has taken it down.
    case takendown
    /// It is gone.
    case deleted
    /// It is gone, and so is its archive.
    case removed
  }

  /// What came of it.
  package var verdict: Verdict
  /// Why it is not complete, in words.
  package var reason: String?
  /// The same in a word, to count by.
  package var kind: String?
  /// What the account is.
  package var state = State.active
  /// The server it is on.
  package var host: String?
  /// The revision that is backed up.
  package var rev: String?
  /// How many bytes the archive has.
  package var bytes: UInt64?
  /// How many bytes came to it.
  package var added: UInt64 = 0

  /// An outcome.
  package init(_ verdict: Verdict, kind: String? = nil, reason: String? = nil) {
    (self.verdict, self.kind, self.reason) = (verdict, kind, reason)
  }

  /// The longest reason that is kept.
  private static let longestReason = 500

  init(_ report: BackupReport) {
    let blobs = report.snapshot.blobs
    if report.snapshot.isSettled {
      self.init(.complete)
    } else if blobs.listFault != nil {
      self.init(.incomplete, kind: "list", reason: "the server's list of blobs broke off")
    } else {
      let count = blobs.unaccepted
      let reasons = Set(report.missing.map(\.reason.rawValue)).sorted()
      self.init(
        .incomplete, kind: reasons.first ?? "unreadable",
        reason: count > 0
          ? "\(count) blobs are missing: \(reasons.joined(separator: ", "))"
          : "records that cannot be read may refer to further blobs")
    }
    if let doubt = report.snapshot.standing.grave.first {
      self = FleetOutcome(.incomplete, kind: "doubt", reason: "the account \(doubt)")
    }
    host = report.snapshot.pds
    rev = report.snapshot.rev?.text
    bytes = report.generation.committedLength
    added = report.bytesAdded
  }

  init(_ error: any Error) {
    self.init(.failed, kind: "\(type(of: error))", reason: "\(error)")
    switch error {
    case BackupError.accountUnavailable(_, let sentence):
      kind = "unavailable"
      state =
        switch RepoError.allCases.first(where: { $0.sentence == sentence }) {
        case .deactivated: .deactivated
        case .suspended: .suspended
        case .takendown: .takendown
        case .notFound: .deleted
        case nil: .active
        }
    case IdentityError.didGone: state = .deleted
    default: break
    }
    reason = reason.map { String($0.prefix(Self.longestReason)) }
  }
}
