internal import ATProtocol
package import Archive
internal import IPLD
public import Snapshots
public import SystemPackage

/// What came of the backup of one account.
public struct BackupReport: Sendable {
  /// What came of it, in a word.
  public enum Outcome: String, Sendable {
    /// Nothing had changed, and nothing was missing but what is accepted as lost: nothing was
    /// written.
    case upToDate = "up-to-date"
    /// It was checked recently, so no request was made; the snapshot says whether something is
    /// missing.
    case recent
    /// Everything is here but what is accepted as lost.
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
  /// What came of it.
  public let outcome: Outcome
  /// Whether the repository is the one of the snapshot before, so that only blobs were asked for.
  package let isRepositoryUnchanged: Bool
  /// How many bytes the archive has grown by.
  public let bytesAdded: UInt64
  /// Whether damaged sections were written again.
  package let isHealed: Bool
  /// If damage was found: what of the archive is damaged still.
  package let damage: StoredDamage
  /// How long it took, in milliseconds.
  package let milliseconds: Int
  /// The blobs that are missing.
  public let missing: BlobLedger.MissingList
  /// What a person should know, and what did not keep the backup from being made.
  public let warnings: [String]
  /// What is new about who the account is, a sentence each: its handle, server, key.
  package let identityChanges: [String]
  /// Whether private data was asked for, and something of it did not come that the server may have.
  package let lacksPrivateData: Bool

  /// That nothing was written.
  ///
  /// - Parameters:
  ///   - base: the newest snapshot.
  ///   - name: what the archive is called.
  ///   - outcome: what came of it; nil if the snapshot tells.
  ///   - milliseconds: how long it took.
  ///   - missing: what the snapshot's ledger says.
  ///   - warnings: what a person should know.
  ///   - lacksPrivateData: whether something did not come that is the owner's alone.
  static func unchanged(
    _ base: ArchivedSnapshot, at name: String, _ outcome: Outcome? = nil, milliseconds: Int,
    missing: BlobLedger.MissingList, warnings: [String] = [], lacksPrivateData: Bool = false
  ) -> BackupReport {
    BackupReport(
      name: name, snapshot: base.snapshot, generation: base.reader.generation,
      outcome: outcome
        ?? (base.snapshot.isSettled && !lacksPrivateData ? .upToDate : .incomplete),
      isRepositoryUnchanged: true, bytesAdded: 0, isHealed: false, damage: StoredDamage(),
      milliseconds: milliseconds, missing: missing, warnings: warnings,
      identityChanges: [], lacksPrivateData: lacksPrivateData)
  }
}
