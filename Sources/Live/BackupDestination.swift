internal import ATProtocol
internal import Files
internal import ObjectStore
public import Remote
public import Snapshots
public import SystemPackage

extension AccountBackup {
  /// Where archives go.
  public enum Destination: Sendable {
    /// Into this file, unless it is another account's archive.
    case file(FilePath)
    /// Into this file, whatever accounts it has already.
    case shared(FilePath)
    /// Into a file in this folder, called after the account.
    case folder(ArchiveFolder)
    /// Into an object in a bucket.
    case bucket(BucketDestination)

    /// The archive of an account, by what the account is called; nil if its name depends on who the
    /// account is.
    func archive(of account: ATIdentifier) throws -> ArchivePlace? {
      switch (self, account) {
      case (.file(let file), _), (.shared(let file), _): .file(file)
      case (.folder(let folder), .handle(let handle)): .file(folder.archive(named: handle))
      case (.folder(let folder), .did(let did)): try folder.archive(of: did).map { .file($0) }
      case (.bucket(let bucket), .handle):
        bucket.isFolder ? nil : .object(bucket.place, in: bucket)
      case (.bucket(let bucket), .did(let did)): .object(bucket.archive(of: did), in: bucket)
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
      case .bucket(let bucket): .object(bucket.archive(of: identity.did), in: bucket)
      }
    }

    /// What may hold one account only: the file or object that was named.
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
}

/// Where one archive is, or is to be.
enum ArchivePlace: Sendable {
  /// A file.
  case file(FilePath)
  /// An object in a bucket.
  case object(BucketAddress, in: BucketDestination)

  /// What a person calls it.
  var name: String {
    switch self {
    case .file(let path): path.string
    case .object(let address, _): "\(address)"
    }
  }
}
