internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots

/// The archive of an account, as far as it can be found before anybody has been asked who the
/// account is.
struct KnownArchive {
  /// The file; nil if its name depends on who the account is.
  let target: ArchiveTarget?
  /// The newest snapshot of the account in it.
  let base: ArchivedSnapshot?

  /// Looks for the archive of an account by what the account is called.
  ///
  /// An archive that another backup of the same run has claimed is not opened: the account's DID
  /// will tell whether it is the same account.
  ///
  /// - Parameters:
  ///   - account: what the account is called.
  ///   - destination: where archives are.
  ///   - claim: the backup's claim on an archive.
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be written to.
  init(
    _ account: ATIdentifier, at destination: AccountBackup.Destination, claim: AccountClaims.File
  ) async throws {
    let place = try destination.archive(of: account)
    guard let place, claim.take(place) else {
      (target, base) = (nil, nil)
      return
    }
    let found = try await destination.open(place)
    let snapshot = try ArchivedSnapshot.newest(of: account, in: found.reader)
    // An archive that bears the handle and knows nothing of it may be another account's.
    if case .folder = destination, snapshot == nil, found.reader?.generation.head != nil {
      claim.release()
      (target, base) = (nil, nil)
    } else {
      (target, base) = (found, snapshot)
    }
  }

  /// Looks for the archive of an account that is known, or for a name for a new one.
  ///
  /// - Parameters:
  ///   - identity: who the account is.
  ///   - destination: where archives are.
  ///   - opened: what was found before it was known, if anything.
  ///   - claim: the backup's claim on an archive.
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be written to;
  ///   `CancellationError`.
  init(
    _ identity: AccountIdentity, at destination: AccountBackup.Destination, opened: ArchiveTarget?,
    claim: AccountClaims.File
  ) async throws {
    let place = try destination.archive(of: identity, isMade: true)
    let found: ArchiveTarget
    if let opened, opened.name == place.name {
      found = opened
    } else {
      opened?.release()
      try await claim.wait(for: place)
      found = try await destination.open(place)
    }
    target = found
    base = try ArchivedSnapshot.newest(of: .did(identity.did), in: found.reader)
    guard base == nil, let reader = found.reader else { return }
    if case .shared = destination { return }
    try found.refuseLeftover(unlessOf: identity.did)
    if let name = destination.namedForOne {
      try reader.refuseOtherAccounts(named: name)
    }
  }
}

extension ArchivedSnapshot {
  /// The newest snapshot of the account that is called so, or was once.
  static func newest(of account: ATIdentifier, in reader: ArchiveReader?) throws
    -> ArchivedSnapshot?
  {
    guard let reader else { return nil }
    let head = reader.generation.head?.cid
    switch account {
    case .did(let did): return try newest(of: did, from: head, in: reader)
    case .handle(let handle):
      // It may have had another handle since.
      return try newest(from: head, in: reader) { $0.snapshot.handle == handle }
        .flatMap { try newest(of: $0.snapshot.did, from: head, in: reader) }
    }
  }
}
