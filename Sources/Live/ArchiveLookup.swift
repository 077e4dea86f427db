internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import ObjectStore
public import Remote
public import Snapshots
public import SystemPackage
internal import XRPC

/// The archive that one backup works on, found by the account's name, or, where that does not lead
/// to it, by who the account is.
///
/// The backup has the archive to itself within its run from the moment it is found until
/// ``release()``. One task uses it.
final class ArchiveLookup {
  private let destination: AccountBackup.Destination
  private let locks: RunLocks
  private let isReadOnly: Bool
  private let number: Int
  private var lock: RunLocks.Lock?
  /// The archive; nil if its name depends on who the account is.
  private(set) var archive: DestinationArchive?
  /// The newest snapshot of the account in it.
  private(set) var base: ArchivedSnapshot?

  /// A look-up that has found nothing yet.
  ///
  /// - Parameters:
  ///   - destination: where archives are.
  ///   - locks: what the backups of this run hold.
  ///   - isReadOnly: whether nothing is written, locked or made.
  init(_ destination: AccountBackup.Destination, _ locks: RunLocks, isReadOnly: Bool) {
    (self.destination, self.locks, self.isReadOnly) = (destination, locks, isReadOnly)
    number = locks.newHolder()
  }

  /// Looks for the archive of an account by what the account is called.
  ///
  /// An archive that another backup of the same run holds is not opened: the account's DID will
  /// tell whether it is the same account.
  ///
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be opened.
  func find(_ account: ATIdentifier) async throws {
    release()
    guard let place = try destination.archive(of: account) else { return }
    lock = try await locks.lock(place.name, waits: false)
    guard lock != nil else { return }
    let found = try await DestinationArchive.open(place, isReadOnly: isReadOnly)
    archive = found
    base = try ArchivedSnapshot.newest(of: account, in: found.reader)
    // An archive that bears the handle and knows nothing of it may be another account's.
    if case .folder = destination, base == nil, found.reader?.generation.head != nil { release() }
  }

  /// Looks for the archive of an account that is known, or for a name for a new one.
  ///
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be opened, or is another
  ///   account's; `CancellationError`.
  func find(_ identity: AccountIdentity) async throws {
    let place = try destination.archive(of: identity, isMade: !isReadOnly)
    if archive?.name != place.name {
      // A backup that waits for an archive holds none.
      release()
      lock = try await locks.lock(place.name, waits: true)
      archive = try await DestinationArchive.open(place, isReadOnly: isReadOnly)
    }
    base = try ArchivedSnapshot.newest(of: .did(identity.did), in: archive?.reader)
    guard base == nil, let archive else { return }
    if case .shared = destination { return }
    try archive.refuseLeftover(unlessOf: identity.did)
    guard let reader = archive.reader else { return }
    if let name = destination.namedForOne { try reader.refuseOtherAccounts(named: name) }
  }

  /// Claims an account for this backup.
  ///
  /// - Throws: ``RunLocks/Taken`` if it is another's of the same run.
  func claim(_ did: DID) throws { try locks.claim(did, for: number) }

  /// Lets other backups have the archive.
  ///
  /// The thread that wrote to it may hold on to it a little longer, so the file is unlocked here.
  func release() {
    archive?.release()
    (archive, base) = (nil, nil)
    if let lock { locks.unlock(lock) }
    lock = nil
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
