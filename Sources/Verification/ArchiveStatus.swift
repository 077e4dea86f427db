package import ATProtocol
package import Archive
package import Files
package import Snapshots
package import SystemPackage

/// How an archive stands, from its footers, its newest manifests and the marks on the file: nothing
/// is verified.
package struct ArchiveStatus: Sendable {
  /// How the backup of one account stands.
  package struct Account: Sendable {
    /// Whose it is.
    package let did: DID
    /// The handle, as the newest snapshot has it.
    package let handle: Handle?
    /// How many snapshots there are of it.
    package let snapshotCount: Int
    /// When the newest was made, in RFC 3339.
    package let newest: String
    /// When a backup last found that the server has nothing newer, or the newest snapshot was made,
    /// whichever is later.
    package let lastCurrent: Moment?
    /// What the newest snapshot holds and lacks.
    package let snapshot: Snapshot
    /// What speaks against the snapshot that was added last, which need not be the newest.
    package let standing: Standing
    /// Whether nothing is missing but what is accepted as lost.
    package var isSettled: Bool { snapshot.isSettled }

    /// The seconds since ``lastCurrent``; nil if that is not known or lies in the future.
    package func age(at now: Moment?) -> Int64? {
      guard let now, let lastCurrent, now.seconds >= lastCurrent.seconds else { return nil }
      return now.seconds - lastCurrent.seconds
    }
  }

  /// Whether it lies elsewhere, so that nothing is noted on a file.
  package let isFar: Bool
  /// The size of the file, in bytes.
  package let byteCount: UInt64
  /// Its accounts, the one with the newest snapshot first.
  package let accounts: [Account]
  /// When all of it was last verified, and what came of that; nil if it never was, or nothing was
  /// noted.
  package let verification: VerificationMark?
  /// How many bytes were committed since then.
  package let bytesSinceVerification: UInt64

  /// Looks at an archive.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - history: its snapshots.
  ///   - path: its file, on which backups and verifications note when they were; nil if it lies
  ///     elsewhere.
  /// - Throws: ``SnapshotError`` for an archive without a snapshot; `ArchiveError` for one that
  ///   cannot be read.
  package init(of reader: ArchiveReader, history: SnapshotHistory, path: FilePath?) throws {
    isFar = path == nil
    byteCount = reader.fileSize
    let newest = history.newestOfAccounts
    guard !newest.isEmpty else { throw SnapshotError.noSnapshot }
    accounts = try newest.map { entry in
      let archived = try ArchivedSnapshot(entry.cid, in: reader)
      let last = history.entries.last { $0.did == entry.did && $0.isVouched } ?? entry
      let lastCurrent = try ArchivedSnapshot(last.cid, in: reader).lastCurrent(in: path)
      return Account(
        did: entry.did, handle: entry.handle,
        snapshotCount: history.entries.count { $0.did == entry.did }, newest: entry.createdAt,
        lastCurrent: lastCurrent ?? Moment(last.createdAt), snapshot: archived.snapshot,
        standing: last.standing)
    }
    verification = path.flatMap { VerificationMark(of: $0) }
    let committed = reader.generation.committedLength
    bytesSinceVerification = committed - min(committed, verification?.committedLength ?? 0)
  }
}
