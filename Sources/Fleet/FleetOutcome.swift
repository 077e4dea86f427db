internal import ATProtocol
internal import Archive
internal import Files
internal import HTTP
internal import IPLD
internal import Live
internal import ObjectStore
internal import Snapshots
internal import XRPC

/// The result of a backup of an account, as the database keeps it.
package struct FleetOutcome: Equatable, Sendable {
  /// The result, in a word.
  package enum Verdict: String, CaseIterable, Sendable {
    /// The archive has everything.
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
    /// Its server does not know it, or its server is unknown, which proves nothing.
    case missing
    /// It was deleted, as ``DeletionEvidence`` proves.
    case deleted
    /// It was deleted or taken out, and its archive was moved aside.
    case removed
    /// The archive that was moved aside has been deleted, too.
    case purged

    /// The state according to a server.
    ///
    /// Its word alone does not prove that an account was deleted; only a backup finds out what
    /// other words mean.
    init(status: String) {
      switch status {
      case "suspended": self = .suspended
      case "takendown": self = .takendown
      case "deleted": self = .missing
      default: self = .deactivated
      }
    }
  }

  /// Why it is not complete, to count by.
  package enum Cause: String, CaseIterable, Sendable {
    /// Blobs are missing.
    case blobs
    /// The server's list of blobs broke off.
    case list
    /// Records that cannot be read may refer to further blobs.
    case unreadable
    /// There are doubts about the account.
    case doubt
    /// Its server does not serve it.
    case unavailable
    /// Its identity could not be looked up.
    case identity
    /// Its server could not be reached, or is overloaded.
    case server
    /// What its server sent failed its checks.
    case content
    /// Its archive cannot be read or written.
    case archive
    /// The store refused, or could not be reached.
    case store
    /// Its archive is not in the store.
    case absent
    /// Anything else.
    case other
  }

  /// The result.
  package var verdict: Verdict
  /// Why it is not complete, in words.
  package var reason: String?
  /// The same, to count by.
  package var cause: Cause?
  /// What the account is.
  package var state = State.active
  /// What proves that it was deleted.
  package var evidence: DeletionEvidence?
  /// Who agrees with its server that it was deleted.
  package var witness: String?
  /// The revision that is backed up, and its commit.
  package var rev: String?, head: String?
  /// How many bytes the archive has.
  package var bytes: UInt64?
  /// How many bytes were added to it.
  package var added: UInt64 = 0
  /// Whether its identity was looked up.
  package var isIdentified = false
  /// Where its archive was put.
  package var trash: String?
  /// Whether its host has failed, and not the account alone.
  package var isHostFault = false

  /// An outcome.
  package init(_ verdict: Verdict, _ cause: Cause? = nil, reason: String? = nil) {
    (self.verdict, self.cause, self.reason) = (verdict, cause, reason)
  }

  /// The longest reason that is kept.
  private static let longestReason = 500

  init(_ report: BackupReport) {
    let blobs = report.snapshot.blobs
    if let doubt = report.snapshot.standing.grave.first {
      self.init(.incomplete, .doubt, reason: "the account \(doubt)")
    } else if report.snapshot.isSettled {
      self.init(.complete)
    } else if blobs.listFault != nil {
      self.init(.incomplete, .list, reason: "the server's list of blobs broke off")
    } else if blobs.unaccepted > 0 {
      let reasons = Set(report.missing.map(\.reason.rawValue)).sorted()
      self.init(
        .incomplete, .blobs,
        reason: "missing blobs (\(blobs.unaccepted)): \(reasons.joined(separator: ", "))")
    } else {
      self.init(
        .incomplete, .unreadable, reason: "records that cannot be read may refer to further blobs")
    }
    (rev, head) = (report.snapshot.rev?.text, "\(report.snapshot.commit)")
    (bytes, added) = (report.generation.committedLength, report.bytesAdded)
  }

  init(_ error: any Error) {
    self.init(.failed, .other, reason: String("\(error)".prefix(Self.longestReason)))
    isHostFault = HostFault.isHosts(error)
    switch error {
    case BackupError.accountUnavailable(_, let answer, _):
      cause = .unavailable
      state =
        switch answer {
        case .unknown: .missing
        case .takendown: .takendown
        case .suspended: .suspended
        case .deactivated: .deactivated
        }
    case let error as IdentityError:
      cause = .identity
      switch error {
      case .didGone, .didNotFound: state = .missing
      default: break
      }
    case BackupError.noServer, BackupError.unusableServer: cause = .identity
    case is XRPCError, is TransportError: cause = .server
    case is CARError, is RepositoryError, is CutShort: cause = .content
    case let error as BackupError where error.isOfWhatCame: cause = .content
    case is ArchiveError, is BackupError: cause = .archive
    case is StoreError, is FetchFailure: cause = .store
    default: break
    }
  }
}
