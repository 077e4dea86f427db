internal import ATProtocol
internal import Archive
internal import Files
internal import ObjectStore
public import Remote
public import Snapshots
public import SystemPackage

/// The destination of a backup: an existing archive, one that is being made under a temporary name,
/// or an object in a bucket.
///
/// 1. A reader of the final name sees what was there before, or an archive with at least one
///    snapshot.
/// 2. What a killed backup has left under the temporary name is found and resumed.
/// 3. The file is locked from the moment it is opened, or made by ``claim()``, so that a second
///    backup into it fails before it has fetched anything.
final class DestinationArchive {
  /// Where the archive is, or will be; for one in a bucket, a file here to note things on.
  let path: FilePath
  /// Its name in messages.
  let name: String
  /// Whether nothing had the final name when this was opened.
  let isNew: Bool
  /// The archive as it was when it was opened; nil if nothing was committed to it.
  let reader: ArchiveReader?
  /// Whose repository an interrupted backup has left under the temporary name, committed or not;
  /// nil if that is unknown.
  private let leftoverOwner: DID?
  /// Where an interrupted backup leaves what it has.
  private let leftover: FilePath
  /// Sentences about what was lost of the end of an archive that was there when it was opened.
  let losses: [String]
  /// Whether more was lost than an interrupted write leaves: the end was cut off, or all snapshots
  /// are lost.
  let isCutOff: Bool
  /// Whether it is a whole archive, only an older one than was written to the file.
  let isOlderCopy: Bool
  /// A warning that what it left is damaged and is replaced; nil if nothing is replaced.
  private(set) var replaced: String?
  private var opened: (any ArchiveStorage)?
  /// The file until it has its final name; nil if it has always had it.
  private var new: AtomicFile?
  private let object: BucketStorage?

  /// How long to wait for another process that writes to the file: a killed one holds the lock
  /// until the system has ended it.
  private static let patience: Duration = .seconds(2)

  /// Opens what is there.
  ///
  /// - Parameters:
  ///   - name: what the archive is called: a file's path, or an address in a bucket.
  ///   - bucket: the bucket; nil for a file.
  ///   - isReadOnly: whether nothing is locked or written: to see what a backup would do.
  ///   - recipients: to whom a new archive in the bucket is sealed, too.
  /// - Throws: `ArchiveError` for a file that is not an archive, or that another process writes to;
  ///   ``BackupError``; as `BucketStorage` does.
  static func open(
    _ name: String, in bucket: BucketDestination? = nil, isReadOnly: Bool = false,
    recipients: [String] = []
  ) async throws -> DestinationArchive {
    guard let bucket else {
      return try await waitingForLock { try open(FilePath(name), isReadOnly: isReadOnly) }
    }
    let address = try BucketAddress(name)
    let object = isReadOnly ? nil : try await BucketStorage(address, of: bucket)
    let there: MappedFile? =
      if let object { try object.map() } else { try await bucket.map(address) }
    let isNew = object?.isNew ?? (there == nil)
    let file = try there ?? bucket.leftover(of: address)
    var left: ArchiveReader?
    do {
      left = try file.map { (file) throws in try ArchiveReader(file.archive(), ignoresTail: true) }
    } catch is ArchiveError where isNew {
      // The writer begins again: no caller has been told of this object.
    }
    let opened = try object.map { (object) throws -> any ArchiveStorage in
      // What cannot be read of a killed backup is begun again.
      try left == nil
        ? StorageLayers.begin(in: object, for: recipients) : object.archive()
    }
    let isCommitted = !isNew || left.map { $0.generation.number > 0 } ?? false
    // Nothing of an existing object is fetched to see whose repository it begins with.
    return try DestinationArchive(
      bucket.file("notes", of: address), name: name, isNew: isNew,
      reader: isCommitted ? left : nil, left: isNew ? left : nil, opened: opened, object: object,
      leftover: bucket.file("tail", of: address))
  }

  private static func open(_ path: FilePath, isReadOnly: Bool) throws -> DestinationArchive {
    guard !AtomicFile.isTaken(path) else {
      if isReadOnly {
        return try DestinationArchive(path, isNew: false, reader: ArchiveReader(path: path))
      }
      try AtomicFile.refuseUnlessFile(path)
      let storage = try FileStorage.openArchive(path)
      try storage.lock()
      return try DestinationArchive(path, in: storage)
    }
    let new = try AtomicFile(path, replacing: false)
    guard !isReadOnly, AtomicFile.isTaken(new.temporaryPath) else {
      let left = try new.leftover()
      let reader = left?.generation.number == 0 ? nil : left
      return try DestinationArchive(path, isNew: true, reader: reader, left: left, new: new)
    }
    let (storage, left, replaced) = try new.storage(continuing: { _ in true })
    let isCommitted = left.map { $0.generation.number > 0 } ?? false
    let reader = isCommitted ? try ArchiveReader(storage.map(), ignoresTail: true) : nil
    let archive = try DestinationArchive(
      path, isNew: true, reader: reader, left: left, opened: storage, new: new)
    archive.replaced = replaced
    return archive
  }

  /// Opens an existing archive, in a storage of any kind.
  convenience init(_ path: FilePath, in storage: any ArchiveStorage) throws {
    let reader = try ArchiveReader(storage.map(), ignoresTail: true)
    try self.init(path, isNew: false, reader: reader, opened: storage)
  }

  private init(
    _ path: FilePath, name: String? = nil, isNew: Bool, reader: ArchiveReader?,
    left: ArchiveReader? = nil, opened: (any ArchiveStorage)? = nil,
    object: BucketStorage? = nil, new: AtomicFile? = nil,
    leftover: FilePath? = nil
  ) throws {
    (self.path, self.name, self.isNew) = (path, name ?? path.string, isNew)
    (self.reader, self.opened, self.object, self.new) = (reader, opened, object, new)
    self.leftover = leftover ?? AtomicFile.leftoverPath(of: path)
    leftoverOwner = left?.owner
    let loss = isNew ? nil : object != nil ? object?.loss : WrittenSize.loss(of: path)
    isOlderCopy = loss != nil && (object?.isWhole ?? WrittenSize.isWhole(path))
    let cutOff =
      isOlderCopy ? loss?.ofOlderCopy(named: "the archive") : loss?.ofEnd(named: "the archive")
    let lostSnapshots = !isNew && reader?.generation.head == nil ? Self.lostSnapshots : nil
    let tail =
      isNew || object?.isWhole == true
      ? nil : object != nil ? Self.damagedEnd : try reader.flatMap(Self.tail)
    losses = [cutOff, lostSnapshots, tail].compactMap(\.self)
    isCutOff = loss != nil && !isOlderCopy || lostSnapshots != nil
  }

  // An archive gets its name with a snapshot in it.
  private static let lostSnapshots =
    "the archive has lost its snapshots: their data stays in the file, but no snapshot leads to it, and \"carpack compact\" deletes it; put back a copy if there is one"

  // An object was replaced whole.
  private static let damagedEnd =
    "the object does not end as an archive does: its end is damaged or was cut off; all of it stays, and the backup goes behind it"

  /// A sentence about what follows the last snapshot.
  private static func tail(of reader: ArchiveReader) throws -> String? {
    let generation = reader.generation
    guard generation.head != nil, reader.fileSize > generation.committedLength else { return nil }
    let what =
      try reader.mayHaveLostFooter
      ? "whose footer is damaged or cut off" : "of a write that was not finished"
    return
      "the archive ends in \(reader.fileSize - generation.committedLength) bytes \(what); their intact part is kept"
  }

  /// Makes and locks the file, if that has not been done; finds out whether an object can be made.
  ///
  /// - Throws: as ``storage()`` does, and as `BucketStorage.check()` does; `CancellationError`.
  func claim() async throws {
    _ = try await Self.waitingForLock { try storage() }
    if let object, object.isNew { try await object.check() }
  }

  private static func waitingForLock<Value>(_ body: () throws -> Value) async throws -> Value {
    let end = ContinuousClock.now + patience
    while true {
      do {
        return try body()
      } catch let error as ArchiveError where error.reason == .locked {
        guard ContinuousClock.now < end else { throw error }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }

  /// The folder for files without a name: the one it lies in, if it is a file.
  var folder: FilePath {
    let parent = path.removingLastComponent()
    return parent.isEmpty ? FilePath(".") : parent
  }

  /// Where large blobs that broke off wait for the next run; nil if nothing of the account may lie
  /// on the disk that is not sealed.
  ///
  /// - Throws: as ``storage()`` does.
  func pieces() throws -> BlobPieces? {
    try storage().isSealed ? nil : BlobPieces(beside: path)
  }

  /// The storage to write to; makes the file if there is none.
  ///
  /// - Throws: `ArchiveError` if it cannot be made, or another process is making it.
  func storage() throws -> any ArchiveStorage {
    if let opened { return opened }
    guard let new else { throw BackupError.notFound("\(path)") }
    do {
      let (storage, _, replaced) = try new.storage(continuing: { _ in true })
      (opened, self.replaced) = (storage, replaced)
      return storage
    } catch BackupError.system(_, Errno.fileExists.rawValue) {
      // Another run has made the archive since this one looked for it: the next run continues it.
      throw ArchiveError(.locked).of(path.string)
    }
  }

  /// What does not match the checksums of what is stored, of all snapshots.
  ///
  /// - Throws: `ArchiveError` if the file cannot be read.
  func storedDamage() throws -> StoredDamage { try opened?.storedDamage() ?? StoredDamage() }

  /// Lets others write to the file: this process will not write to it any more.
  ///
  /// A file that was made and is still empty is removed.
  func release() {
    new?.keep()
    opened?.unlock()
  }

  /// Refuses to replace what an interrupted backup of another account has left: its blobs may exist
  /// nowhere else.
  ///
  /// - Throws: ``BackupError/leftover(_:_:)``.
  func refuseLeftover(unlessOf did: DID) throws {
    guard isNew else { return }
    let newest = try reader.flatMap { (reader) throws in try SnapshotHistory(of: reader).newest }
    guard let owner = newest?.did ?? leftoverOwner, owner != did else { return }
    throw BackupError.leftover(leftover.string, owner.text)
  }

  /// Gives the file its final name, if it does not have it, and returns when content and name are
  /// on the medium; makes an object in a bucket.
  ///
  /// An archive that is up to date has to be committed, too: the run that wrote it may have been
  /// killed before it was.
  ///
  /// - Throws: ``BackupError``; the file keeps its temporary name then. `ArchiveError` if it cannot
  ///   be synced; as `BucketStorage.commit()` does.
  func publish() async throws {
    if let object { return try await object.commit() }
    if let new {
      try new.publishArchive()
      self.new = nil
      return
    }
    try opened?.commit()
    try opened?.synchronizeName()
  }

  /// Notes that a complete backup stands behind the older copy that was found.
  func acceptLoss() throws {
    guard isOlderCopy, let opened else { return }
    let content = try ArchiveReader(opened.map(), ignoresTail: true).content(after: nil)
    guard let object else { return WrittenSize.accept(path, holding: content) }
    try object.note { _ in content }
    try object.noteSeen()
  }
}

/// The archive that one backup works on, found by the account's name, or, if that does not lead to
/// it, by the account's identity.
///
/// The backup has the archive to itself within its run from the moment it is found until
/// ``release()``. One task uses it.
final class ArchiveLookup {
  private let destination: AccountBackup.Destination
  private let locks: RunLocks
  private let isReadOnly: Bool
  private let recipients: [String]
  /// The accounts that were claimed for this backup.
  private var claimed: Set<DID> = []
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
  ///   - recipients: to whom a new archive in a bucket is sealed, too.
  init(
    _ destination: AccountBackup.Destination, _ locks: RunLocks, isReadOnly: Bool,
    recipients: [String] = []
  ) {
    (self.destination, self.locks, self.isReadOnly) = (destination, locks, isReadOnly)
    self.recipients = recipients
  }

  /// Looks for the archive of an account by the account's name.
  ///
  /// An archive that another backup of the same run holds is not opened: the account's DID will
  /// tell whether it is the same account.
  ///
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be opened.
  func find(_ account: ATIdentifier) async throws {
    release()
    guard let name = try destination.archive(of: account) else { return }
    lock = try await locks.lock(name, waits: false)
    guard lock != nil else { return }
    let found = try await open(name)
    archive = found
    base = try ArchivedSnapshot.newest(of: account, in: found.reader)
    // An archive that bears the handle and knows nothing of it may be another account's.
    if case .folder = destination, base == nil, found.reader?.generation.head != nil { release() }
  }

  /// Looks for the archive of an identified account, or for a name for a new one.
  ///
  /// - Throws: `ArchiveError` and ``BackupError`` for a file that cannot be opened, or is another
  ///   account's; `CancellationError`.
  func find(_ identity: AccountIdentity) async throws {
    let name = try destination.archive(of: identity, isMade: !isReadOnly)
    if archive?.name != name {
      // A backup that waits for an archive holds none.
      release()
      lock = try await locks.lock(name, waits: true)
      archive = try await open(name)
    }
    base = try ArchivedSnapshot.newest(of: .did(identity.did), in: archive?.reader)
    guard base == nil, let archive else { return }
    if case .shared = destination { return }
    try archive.refuseLeftover(unlessOf: identity.did)
    guard let reader = archive.reader else { return }
    if let name = destination.namedForOne {
      try reader.refuseOtherAccounts(than: identity.did, named: name)
    }
  }

  private func open(_ name: String) async throws -> DestinationArchive {
    do {
      return try await DestinationArchive.open(
        name, in: destination.bucket, isReadOnly: isReadOnly, recipients: recipients)
    } catch let error as any ArchiveFileError {
      throw error.of(name)
    }
  }

  /// Claims an account for this backup.
  ///
  /// - Throws: ``RunLocks/Taken`` if another backup of the same run has it.
  func claim(_ did: DID) throws {
    guard !claimed.contains(did) else { return }
    try locks.claim(did)
    claimed.insert(did)
  }

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
    switch account {
    case .did(let did): return try newest(of: did, in: reader)
    case .handle(let handle):
      // It may have had another handle since.
      return try newest(from: reader.generation.head?.cid, in: reader) {
        $0.snapshot.handle == handle
      }.flatMap { try newest(of: $0.snapshot.did, in: reader) }
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
    /// Into a file in this folder, named after the account.
    case folder(ArchiveFolder)
    /// Into an object in a bucket.
    case bucket(BucketDestination)

    /// The bucket; nil for files.
    var bucket: BucketDestination? { if case .bucket(let bucket) = self { bucket } else { nil } }

    /// The name of an account's archive, given the account's name; nil if it depends on the
    /// account's identity.
    func archive(of account: ATIdentifier) throws -> String? {
      switch (self, account) {
      case (.file(let file), _), (.shared(let file), _): file.string
      case (.folder(let folder), .handle(let handle)): folder.archive(named: handle).string
      case (.folder(let folder), .did(let did)): try folder.archive(of: did)?.string
      case (.bucket(let bucket), .handle): bucket.isFolder ? nil : "\(bucket.place)"
      case (.bucket(let bucket), .did(let did)): "\(bucket.archive(of: did))"
      }
    }

    /// The name of an account's archive, or of a new one.
    ///
    /// - Parameters:
    ///   - identity: who the account is.
    ///   - isMade: whether to create the folder if it does not exist.
    func archive(of identity: AccountIdentity, isMade: Bool) throws -> String {
      if let name = try archive(of: .did(identity.did)) { return name }
      guard case .folder(let folder) = self else { throw BackupError.notFound(identity.did.text) }
      let handle = identity.isHandleConfirmed == false ? nil : identity.handle
      return try folder.newArchive(of: identity.did, handle: handle, isMade: isMade).string
    }

    /// The file or object that was named, which may hold one account only.
    var namedForOne: String? {
      switch self {
      case .file(let path): path.string
      case .bucket(let bucket): bucket.isFolder ? nil : "\(bucket.place)"
      case .shared, .folder: nil
      }
    }

    /// Whether all accounts go into one archive.
    var isOneArchive: Bool { if case .shared = self { true } else { namedForOne != nil } }
  }
}
