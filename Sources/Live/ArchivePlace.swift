internal import ATProtocol
internal import Files
internal import ObjectStore
internal import Remote
internal import Snapshots
internal import SystemPackage

/// Where one archive is, or is to be.
enum ArchivePlace: Hashable, Sendable {
  /// A file.
  case file(FilePath)
  /// An object in a bucket.
  case object(BucketAddress)

  /// What a person calls it.
  var name: String {
    switch self {
    case .file(let path): path.string
    case .object(let address): "\(address)"
    }
  }
}

extension AccountBackup.Destination {
  /// The archive of an account, by what the account is called; nil if its name depends on who the
  /// account is.
  func archive(of account: ATIdentifier) throws -> ArchivePlace? {
    switch (self, account) {
    case (.file(let file), _), (.shared(let file), _): .file(file)
    case (.folder(let folder), .handle(let handle)): .file(folder.archive(named: handle))
    case (.folder(let folder), .did(let did)): try folder.archive(of: did).map { .file($0) }
    case (.bucket(let bucket), .handle): bucket.isFolder ? nil : .object(bucket.place)
    case (.bucket(let bucket), .did(let did)): .object(bucket.archive(of: did))
    }
  }

  /// The archive of an account, or the name for a new one.
  ///
  /// - Parameters:
  ///   - identity: who the account is.
  ///   - isMade: whether the folder is made, if it is not there.
  func archive(of identity: AccountIdentity, isMade: Bool) throws -> ArchivePlace {
    switch self {
    case .file(let file), .shared(let file): .file(file)
    case .folder(let folder):
      .file(
        try folder.archive(of: identity.did)
          ?? folder.newArchive(
            of: identity.did,
            handle: identity.isHandleConfirmed == false ? nil : identity.handle, isMade: isMade))
    case .bucket(let bucket): .object(bucket.archive(of: identity.did))
    }
  }

  /// Opens an archive to append to it.
  ///
  /// - Throws: as ``ArchiveTarget`` does.
  func open(_ place: ArchivePlace) async throws -> ArchiveTarget {
    switch (place, self) {
    case (.object(let address), .bucket(let bucket)):
      try await ArchiveTarget.open(address, of: bucket)
    case (.file(let path), _): try await ArchiveTarget.open(path)
    case (.object, _): throw BackupError.notFound(place.name)
    }
  }

  /// What has to be this account's alone: the one file or object that was named.
  var namedForOne: String? {
    switch self {
    case .file(let path): path.string
    case .bucket(let bucket): bucket.isFolder ? nil : "\(bucket.place)"
    case .shared, .folder: nil
    }
  }

  /// Whether all accounts go into one archive.
  var isOneArchive: Bool {
    switch self {
    case .file, .shared: true
    case .folder: false
    case .bucket(let bucket): !bucket.isFolder
    }
  }

  /// Whether archives lie in a bucket.
  var isInBucket: Bool { if case .bucket = self { true } else { false } }
}
