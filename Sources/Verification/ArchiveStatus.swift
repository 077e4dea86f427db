package import Archive
package import Files
package import Snapshots
package import SystemPackage

/// The state of an archive, by its footers, its newest manifests and the marks on the file: nothing
/// is verified.
package struct ArchiveStatus: Sendable {
  /// The state of one account's backup.
  package struct Account: Sendable {
    /// How many snapshots there are of it.
    package let snapshotCount: Int
    /// When the newest was made, in RFC 3339.
    package let newest: String
    /// The seconds since a backup last found that the server has nothing newer, or the newest
    /// snapshot was made, whichever is later; nil if that is not known or lies in the future.
    package let age: Int64?
    /// Whether that is too long ago, or unknown.
    package let isOverdue: Bool
    /// What the newest snapshot holds and lacks.
    package let snapshot: Snapshot
    /// What speaks against the snapshot that was added last, which need not be the newest.
    package let standing: Standing
  }

  /// The result, by the worst that is known of it.
  package enum Verdict: String, CaseIterable {
    case complete, overdue, incomplete
    case notGenuine = "not genuine"
    case damaged
  }

  /// Whether it is remote, so that nothing is noted on a file.
  package let isFar: Bool
  /// The size of the file, in bytes.
  package let byteCount: UInt64
  /// Its accounts, the one with the newest snapshot first.
  package let accounts: [Account]
  /// When all of it was last verified, and the result; nil if it never was, or nothing was noted.
  package let verification: VerificationMark?
  /// How many seconds ago that was; nil if it is not known.
  package let verifiedAge: Int64?
  /// How many bytes were committed since then.
  package let bytesSinceVerification: UInt64

  /// How many bytes were cut off of its end since it was written; 0 if that is not known.
  package let bytesLost: UInt64
  /// Whether some were, and what is left is a whole archive, only an older one.
  package let isOlderCopy: Bool

  /// The result.
  package var verdict: Verdict {
    if bytesLost > 0 && !isOlderCopy || verification?.verdict == .damaged { return .damaged }
    if accounts.contains(where: { !$0.standing.grave.isEmpty }) { return .notGenuine }
    if bytesLost > 0 || !accounts.allSatisfy(\.snapshot.isSettled) { return .incomplete }
    return accounts.contains(where: \.isOverdue) ? .overdue : .complete
  }

  /// Determines the state of an archive.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - history: its snapshots.
  ///   - path: its file, on which backups and verifications note when they were; nil if it lies
  ///     elsewhere.
  ///   - now: the time; nil if that is not known.
  ///   - maximumAge: after how many seconds a backup is overdue; nil for never.
  /// - Throws: ``SnapshotError`` for an archive without a snapshot; `ArchiveError` for one that
  ///   cannot be read.
  package init(
    of reader: ArchiveReader, history: SnapshotHistory, path: FilePath?, now: Moment?,
    maximumAge: Int64?
  ) throws {
    isFar = path == nil
    byteCount = reader.fileSize
    let newest = history.newestOfAccounts
    guard !newest.isEmpty else { throw SnapshotError.noSnapshot }
    accounts = try newest.map { entry in
      let archived = try ArchivedSnapshot(entry.cid, in: reader)
      let entries = history.entries(of: entry.did)
      let last = entries.last(where: \.isVouched) ?? entry
      let noted = try ArchivedSnapshot(last.cid, in: reader).lastCurrent(in: path)
      let age = (noted ?? Moment(last.createdAt)).flatMap { $0.age(at: now) }
      return Account(
        snapshotCount: entries.count, newest: entry.createdAt, age: age,
        isOverdue: maximumAge.map { age ?? .max > $0 } ?? false, snapshot: archived.snapshot,
        standing: last.standing)
    }
    bytesLost = path.map { WrittenSize.lost(of: $0) } ?? 0
    isOlderCopy = bytesLost > 0 && path.map { WrittenSize.isWhole($0) } ?? false
    verification = path.flatMap { VerificationMark(of: $0) }
    verifiedAge = verification.flatMap { Moment($0.time) }.flatMap { time in
      now.map { max(0, $0.seconds - time.seconds) }
    }
    let committed = reader.generation.committedLength
    bytesSinceVerification = committed - min(committed, verification?.committedLength ?? 0)
  }
}

extension Moment {
  /// The seconds since then; nil if it is not known what the time is, or it lies in the future.
  fileprivate func age(at now: Moment?) -> Int64? {
    now.flatMap { $0.seconds < seconds ? nil : $0.seconds - seconds }
  }
}
