public import ATProtocol
package import Archive
public import IPLD
public import Snapshots
public import SystemPackage

/// Something that happens while an account is backed up.
public enum BackupEvent: Sendable {
  /// The account and its server are known.
  case resolved(DID, handle: Handle?, server: String)
  /// The repository has arrived and has passed its checks.
  case repository(records: Int, bytes: UInt64, isIncremental: Bool)
  /// The list of blobs is known, and how many have to be requested.
  case blobs(referenced: Int, listed: Int?, wanted: Int)
  /// Progress was made.
  case progress(BackupProgress)
  /// A blob could not be fetched; what each server that was asked said of it.
  case missing(BlobLedger.Missing, [ServerAnswer])
  /// A blob that was missing has come from a server; what those asked before said of it.
  case arrived(CID, from: String, [ServerAnswer])
  /// A warning that does not prevent the backup.
  case warning(String)
}

/// The progress of a backup.
public struct BackupProgress: Equatable, Sendable {
  /// The stage.
  public enum Stage: String, CaseIterable, Sendable {
    /// Looking up the account and its server.
    case resolving
    /// Receiving what the server keeps for the account's owner alone.
    case privateData = "private"
    /// Asking an app view for the people and posts that records point to.
    case context
    /// Receiving the repository.
    case repository
    /// Checking the repository that has arrived.
    case checking
    /// Asking the server which blobs it has.
    case listing
    /// Receiving blobs.
    case blobs
    /// Committing the snapshot.
    case committing
  }

  /// The stage.
  public package(set) var stage: Stage
  /// How many bytes have arrived in this stage.
  public package(set) var bytes: UInt64 = 0
  /// How many blobs have arrived.
  public package(set) var blobsDone = 0
  /// How many blobs there are to ask for.
  public package(set) var blobsTotal = 0
  /// How many of them could not be fetched.
  public package(set) var blobsFailed = 0

  /// The progress of a stage.
  package init(_ stage: Stage, bytes: UInt64 = 0, blobsTotal: Int = 0) {
    (self.stage, self.bytes, self.blobsTotal) = (stage, bytes, blobsTotal)
  }
}

/// The result of the backup of one account.
public struct BackupReport: Sendable {
  /// The result, in a word.
  public enum Outcome: String, CaseIterable, Sendable {
    /// Nothing had changed, and nothing was missing except what is accepted as lost: nothing was
    /// written.
    case upToDate = "up-to-date"
    /// It was checked recently, so no request was made; the snapshot says whether something is
    /// missing.
    case recent
    /// Everything is here except what is accepted as lost.
    case complete
    /// The repository is here, and some blobs are not, or it is not known which there are.
    case incomplete
  }

  /// What the archive is called: a file's path, or an address in a bucket.
  public let name: String
  /// The file's path, if it is a file.
  public var path: FilePath { FilePath(name) }
  /// The snapshot.
  public let snapshot: Snapshot
  /// What is committed.
  package let generation: Generation
  /// The result.
  public let outcome: Outcome
  /// Whether the repository is the one of the snapshot before, so that only blobs were requested.
  package let isRepositoryUnchanged: Bool
  /// How many bytes the archive has grown by.
  public internal(set) var bytesAdded: UInt64 = 0
  /// Whether damaged sections were written again.
  package internal(set) var isHealed = false
  /// If damage was found: what is still damaged in the archive.
  package internal(set) var damage = StoredDamage()
  /// Whether the archive was found to be an older copy of what had been written to the file.
  ///
  /// A warning says what that was; behind a complete backup it counts as accepted.
  package internal(set) var isBehindOlderCopy = false
  /// How long it took, in milliseconds.
  package let milliseconds: Int
  /// The blobs that are missing.
  public let missing: BlobLedger.MissingList
  /// Warnings that did not prevent the backup.
  public let warnings: [String]
  /// What is new about the account's identity, a sentence each: its handle, server, key.
  package internal(set) var identityChanges: [String] = []
  /// Whether private data was requested, and some that the server may have did not come.
  package let lacksPrivateData: Bool
  /// The result of asking an app view; nil if none was asked.
  package internal(set) var context: ContextOutcome?

  /// The report of a backup that wrote nothing.
  ///
  /// - Parameters:
  ///   - base: the newest snapshot.
  ///   - name: what the archive is called.
  ///   - outcome: the result; nil if the snapshot tells.
  ///   - milliseconds: how long it took.
  ///   - missing: what the snapshot's ledger says.
  ///   - warnings: what a person should know.
  ///   - lacksPrivateData: whether something did not come that is the owner's alone.
  ///   - context: the result of asking an app view.
  static func unchanged(
    _ base: ArchivedSnapshot, at name: String, _ outcome: Outcome? = nil, milliseconds: Int,
    missing: BlobLedger.MissingList, warnings: [String] = [], lacksPrivateData: Bool = false,
    context: ContextOutcome? = nil
  ) -> BackupReport {
    BackupReport(
      name: name, snapshot: base.snapshot, generation: base.reader.generation,
      outcome: outcome ?? (base.snapshot.isSettled && !lacksPrivateData ? .upToDate : .incomplete),
      isRepositoryUnchanged: true, milliseconds: milliseconds, missing: missing,
      warnings: warnings, lacksPrivateData: lacksPrivateData, context: context)
  }
}
