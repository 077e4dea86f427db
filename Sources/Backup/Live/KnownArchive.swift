internal import ATProtocol
internal import Archive
internal import IPLD
internal import SystemPackage

/// The archive of an account, as far as it can be found before anybody has been asked who the account is.
struct KnownArchive {
  /// The file; nil if its name depends on who the account is.
  let target: ArchiveTarget?
  /// The newest snapshot of the account in it.
  let base: ArchivedSnapshot?

  /// Looks for the archive of an account by what the account is called.
  ///
  /// An archive that another backup of the same run has claimed is not opened: the account's DID will
  /// tell whether it is the same account.
  ///
  /// - Parameters:
  ///   - account: what the account is called.
  ///   - destination: where archives are.
  ///   - claim: the backup's claim on an archive.
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be written to.
  init(
    _ account: ATIdentifier, at destination: AccountBackup.Destination, claim: AccountClaims.File
  ) async throws {
    let path: FilePath?
    switch (destination, account) {
    case (.file(let file), _): path = file
    case (.folder(let folder), .handle(let handle)): path = folder.archive(named: handle)
    case (.folder(let folder), .did(let did)): path = try folder.archive(of: did)
    }
    guard let path, claim.take(path) else {
      (target, base) = (nil, nil)
      return
    }
    let found = try await ArchiveTarget.open(path)
    let named = try found.newest { snapshot in
      switch account {
      case .did(let did): snapshot.did == did
      case .handle(let handle): snapshot.handle == handle
      }
    }
    // It may have had another handle since.
    let snapshot = try named.flatMap { named in
      try found.newest { $0.did == named.snapshot.did }
    }
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
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be written to; `CancellationError`.
  init(
    _ identity: AccountIdentity, at destination: AccountBackup.Destination, opened: ArchiveTarget?,
    claim: AccountClaims.File
  ) async throws {
    let path: FilePath
    switch destination {
    case .file(let file): path = file
    case .folder(let folder):
      path =
        try folder.archive(of: identity.did)
        ?? folder.newArchive(of: identity.did, handle: identity.handle)
    }
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
    base = try found.newest { $0.did == identity.did }
  }
}

extension ArchiveTarget {
  /// The newest snapshot that is one of those looked for.
  func newest(where matches: (Snapshot) -> Bool) throws -> ArchivedSnapshot? {
    try reader.flatMap { (reader) throws in
      try ArchivedSnapshot.newest(from: reader.generation.head?.cid, in: reader) {
        matches($0.snapshot)
      }
    }
  }
}
