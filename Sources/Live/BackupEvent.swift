public import ATProtocol
public import IPLD
public import Snapshots

/// Something that happens while an account is backed up.
public enum BackupEvent: Sendable {
  /// It is known who the account is, and where.
  case resolved(DID, handle: Handle?, server: String)
  /// The repository has arrived and is what it should be.
  case repository(records: Int, bytes: UInt64, isIncremental: Bool)
  /// It is known which blobs there are, and how many have to be asked for.
  case blobs(referenced: Int, listed: Int?, wanted: Int)
  /// It gets on.
  case progress(BackupProgress)
  /// A blob does not come; what each server that was asked said of it.
  case missing(BlobLedger.Missing, [ServerAnswer])
  /// A blob that was missing has come from a server; what those asked before said of it.
  case arrived(CID, from: String, [ServerAnswer])
  /// Something that a person should know, and that does not keep the backup from being made.
  case warning(String)
}

/// How far a backup has come.
public struct BackupProgress: Equatable, Sendable {
  /// What is being done.
  package enum Stage: String, Sendable {
    /// Finding out who the account is, and where.
    case resolving
    /// Receiving what the server keeps for the account's owner alone.
    case privateData = "private"
    /// Receiving the repository.
    case repository
    /// Checking the repository that has arrived.
    case checking
    /// Asking the server which blobs it has.
    case listing
    /// Receiving blobs.
    case blobs
    /// Writing what makes it all count.
    case committing
  }

  /// What is being done.
  package var stage: Stage
  /// How many bytes have arrived in this stage.
  package var bytes: UInt64 = 0
  /// How many of them have come.
  package var blobsDone = 0
  /// How many blobs there are to ask for.
  package var blobsTotal = 0
  /// How many of them do not come.
  package var blobsFailed = 0

  /// The beginning of a stage.
  package init(_ stage: Stage) { self.stage = stage }
}
