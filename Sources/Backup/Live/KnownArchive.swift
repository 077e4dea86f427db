internal import ATProtocol
internal import Archive
internal import IPLD
internal import SystemPackage

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
    let path = try destination.archive(of: account)
    guard let path, claim.take(path) else {
      (target, base) = (nil, nil)
      return
    }
    let found = try await ArchiveTarget.open(path)
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
    let path = try destination.archive(of: identity, isMade: true)
    let found: ArchiveTarget
    if let opened, opened.path == path {
      found = opened
    } else {
      opened?.release()
      try await claim.wait(for: path)
      found = try await ArchiveTarget.open(path)
    }
    try found.startOver(unlessOf: identity.did)
    target = found
    base = try ArchivedSnapshot.newest(of: .did(identity.did), in: found.reader)
    if case .file(let path) = destination, base == nil, let reader = found.reader {
      try reader.refuseOtherAccounts(named: path.string)
    }
  }
}

extension AccountBackup.Destination {
  /// The archive of an account, by what the account is called; nil if its name depends on who the
  /// account is.
  func archive(of account: ATIdentifier) throws -> FilePath? {
    switch (self, account) {
    case (.file(let file), _), (.shared(let file), _): file
    case (.folder(let folder), .handle(let handle)): folder.archive(named: handle)
    case (.folder(let folder), .did(let did)): try folder.archive(of: did)
    }
  }

  /// The archive of an account, or the name for a new one.
  ///
  /// - Parameters:
  ///   - identity: who the account is.
  ///   - isMade: whether the folder is made, if it is not there.
  func archive(of identity: AccountIdentity, isMade: Bool) throws -> FilePath {
    switch self {
    case .file(let file), .shared(let file): file
    case .folder(let folder):
      try folder.archive(of: identity.did)
        ?? folder.newArchive(
          of: identity.did,
          handle: identity.isHandleConfirmed == false ? nil : identity.handle, isMade: isMade)
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
